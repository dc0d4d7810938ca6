"""Questions to one scanned log that are answered together: each pass over the log serves all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gradientdice.estimators.answer import Estimator
from gradientdice.evaluation.difference import Compared
from gradientdice.evaluation.estimate import Estimate
from gradientdice.log.scanning.passes import Sums
from gradientdice.policies import StatePolicy
from gradientdice.problem.scan.asked import Asked
from gradientdice.statistics.mass import MassSums
from gradientdice.statistics.room import Room
from gradientdice.statistics.scan.scorers import Scorer
from gradientdice.statistics.scan.seen import SeenBehavior
from gradientdice.statistics.shares import NOTHING, JointShares, Pair


@dataclass(frozen=True, eq=False)
class Question:
    """One policy with one estimator.

    Attributes:
        asked: the log, the policy, and the function class, which all questions share but for the policy.
        estimator: what answers.
        name: of the policy, for errors; empty if there is only one.
    """

    asked: Asked
    estimator: Estimator
    name: str = ""

    @property
    def discount(self) -> float:
        """γ."""
        return self.estimator.discount


@dataclass(frozen=True, eq=False)
class ScannedBehavior:
    """The behaviour's own value at one discount, as an answer among the others.

    Attributes:
        discount: γ.
        value: the value.
        source: what gives rows or episodes their shares in its error.
        room: for what else may be wrong with it.
    """

    discount: float
    value: float
    source: Scorer | SeenBehavior
    room: Room


@dataclass(frozen=True, eq=False)
class Scored:
    """What the second pass gives.

    Attributes:
        joint: the shares of all answers, the behaviour's last.
        masses: how the mass of each answer is spread.
        sums: of the pass; None where counts were enough.
    """

    joint: JointShares
    masses: list[MassSums]
    sums: Sums | None


@dataclass(frozen=True, eq=False)
class ScannedEstimates:
    """The answers to all questions.

    Attributes:
        estimates: one for each.
        behaviors: the behaviour's own value, by discount, where it is known.
    """

    estimates: list[Estimate]
    behaviors: dict[float, Compared]


@dataclass(frozen=True, eq=False)
class Columns:
    """Which answers are scored in a pass: those to the questions, then the behaviour's.

    Attributes:
        scorers: of the questions in their order, and of those behaviours that are solved.
        behaviors: those that are means over what was seen.
        places: the column of the behaviour at each discount, numbered from 1.
        pairs: whose differences are summed.
    """

    scorers: tuple[Scorer, ...]
    behaviors: tuple[SeenBehavior, ...]
    places: dict[float, int]
    pairs: tuple[Pair, ...]

    @classmethod
    def of(cls, questions: Sequence[Question], scorers: Sequence[Scorer], sides: Sequence[ScannedBehavior]) -> Columns:
        """Differences are those between policies at one discount, between discounts of one policy, and to nothing."""
        solved = [side for side in sides if not isinstance(side.source, SeenBehavior)]
        seen = [side for side in sides if isinstance(side.source, SeenBehavior)]
        places = {side.discount: len(questions) + 1 + place for place, side in enumerate((*solved, *seen))}
        own: list[tuple[float, StatePolicy | None]] = [(each.discount, each.asked.policy) for each in questions]
        own += [(discount, None) for discount in places]
        pairs = [(one, NOTHING) for one in range(1, len(own) + 1)]
        for one, (discount, policy) in enumerate(own, start=1):
            for other, (another, second) in enumerate(own[one:], start=one + 1):
                if discount == another or (policy is not None and policy is second):
                    pairs.append((one, other))
        return cls(
            (*scorers, *(side.source for side in solved if not isinstance(side.source, SeenBehavior))),
            tuple(side.source for side in seen if isinstance(side.source, SeenBehavior)),
            places,
            tuple(pairs),
        )
