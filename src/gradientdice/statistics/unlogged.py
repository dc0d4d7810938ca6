"""How far a table's answer may be off where the log does not show what the policy does or what happens then.

Where an action is never logged, the log's own actions are used. With d̃ the occupancy of that restricted policy, the
policy's value differs from its value by

    Σ_s d̃(s) Σ_{a unlogged} π(a|s) (Q(s,a) − Q(s, the log's own action)),

exactly (the performance difference; both sides are (1−γ)-normalised, and Q is not). A step that was sent from a state
without rows to a start adds γ (V(there) − V(start)). The sum of the weights is the share of unlogged steps, and the
differences are at most the range of Q, for which that over all logged pairs is used. An action that is unlike all that
was logged may do more: nothing in the log can tell, which is why the share has thresholds of its own.

Where all rows of each pair agree, r + γV' − Q is 0 in every row and the interval has no width from them; where few
differ, their number is not normal. Only repeats can differ: a pair logged once agrees with itself. The number of rows
that differ from their pair's usual outcome is about Poisson, whose upper limit is a few rows above the normal one (3.7
at 95% where none differ, 2 where many do). Those rows' share of the repeats, times the range of Q, is what such rare
outcomes may change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import chi2, norm

from gradientdice.log.transitions import Transitions
from gradientdice.problem.empirical import TabularSolution
from gradientdice.statistics.checks import Check, below

# With this many rows that differ from their pair's usual outcome the normal interval serves.
FEW = 30


@dataclass(frozen=True)
class UnseenOutcomes:
    """What is known of outcomes that were never seen.

    Attributes:
        spread: the range of Q.
        repeats: how many rows could have differed from their pair's usual outcome.
        differing: how many did.
    """

    spread: float
    repeats: float
    differing: float

    def error(self, confidence: float) -> float:
        """How much an interval of this confidence is widened on both sides."""
        if self.differing >= FEW:
            return 0.0
        level = 0.5 + confidence / 2
        normal = float(norm.ppf(level)) * math.sqrt(self.differing)
        more = float(chi2.ppf(level, 2 * self.differing + 2)) / 2 - self.differing - normal
        return self.spread * (min(1.0, more / self.repeats) if self.repeats > 0 else 1.0)


@dataclass(frozen=True)
class UnloggedError:
    """How much an interval is widened on both sides for what the log does not contain.

    Attributes:
        steps: for steps that were never logged.
        outcomes: for outcomes that were never seen, where nearly all rows of each pair agree.
    """

    steps: float
    outcomes: float

    @property
    def total(self) -> float:
        """Both together."""
        return self.steps + self.outcomes

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know of each that is not 0."""
        notes = []
        if self.steps:
            notes.append(
                f"the interval is widened by {self.steps:.2g} on both sides for the steps that were never logged: "
                "their share times the range of Q over the logged pairs"
            )
        if self.outcomes:
            notes.append(
                f"(nearly) all rows of each state and action agree; the interval is widened by {self.outcomes:.2g} on "
                "both sides for outcomes too rare to have been seen"
            )
        return tuple(notes)


@dataclass(frozen=True, eq=False)
class Repeats:
    """What a log says of how the outcomes of its pairs vary.

    Attributes:
        rows: (n,) how many rows have the pair of each row; rows of weight 0 are none.
        differing: (n,) which share of these have another reward or next state than most of them.
        copies: (n,) how many rows of the log that count each of these stands for.
    """

    rows: Int[np.ndarray, " n"]
    differing: Float[np.ndarray, " n"]
    copies: Float[np.ndarray, " n"]

    @classmethod
    def of(cls, data: Transitions) -> Repeats:
        """Counted for a table's log."""
        counted = (data.row_weights > 0).astype(np.float64)
        _, reward = np.unique(data.rewards, return_inverse=True)
        pair = _numbered(data.states, data.actions)
        outcome = _numbered(_numbered(pair, reward), np.where(data.ended, 0, data.next_states + 1))
        rows, alike = np.bincount(pair, counted), np.bincount(outcome, counted)
        usual = np.zeros(len(rows))
        np.maximum.at(usual, pair, alike[outcome])
        rows = np.maximum(rows, 1)
        return cls(rows[pair].astype(np.int64), (1 - usual / rows)[pair], counted)


def _numbered(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Equal pairs of whole numbers get equal numbers, from 0 on."""
    both = first.astype(np.int64) * (int(second.max()) + 1) + second
    return np.unique(both, return_inverse=True)[1]


def unseen_outcomes(solved: TabularSolution, repeats: Repeats) -> UnseenOutcomes:
    """Those of the pairs that the policy reaches."""
    used = solved.ratio > 0
    copies = repeats.copies[used]
    return UnseenOutcomes(
        solved.spread, float(copies @ (1 - 1 / repeats.rows[used])), float(copies @ repeats.differing[used])
    )


def once_logged(data: Transitions, ratio: Float[np.ndarray, " n"], repeats: Repeats) -> Check:
    """The share of the target's mass on pairs that have one row, which says nothing of how its outcome varies."""
    mass = np.abs(data.row_weights * ratio)
    total = float(mass.sum())
    alone = float(mass[repeats.rows == 1].sum())
    # On random tables (60 to 400 pairs, 150 to 2,500 rows) 95% intervals cover in 96% of the logs where nothing is
    # logged once, in 93% where that share is below 0.03 and in 88% to 91% beyond 0.1.
    return below(
        "steps that were logged once",
        alone / total if total > 0 else 0.0,
        0.03,
        0.3,
        "share of the policy's steps with a state and action that only one row has: how they vary is unknown",
        "log more data there, or use features that generalise",
    )
