"""`select`: the candidate to deploy, or the baseline if none is shown to be better.

A candidate is shown to be better if the lower end of its paired difference to the baseline lies above 0, with lower
ends that hold for all candidates at once. So the chance that any candidate is falsely shown to be better is at most
1 − confidence, however many there are, and so is that of deploying one that is not. Candidates that are shown to be
better are then left out and the rest looked at anew, with lower ends that need to hold for fewer (Romano and Wolf): the
level holds all the same, because the largest error of fewer is no larger.

References:
    Romano and Wolf, Exact and Approximate Stepdown Methods for Multiple Hypothesis Testing, JASA 2005.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradientdice.base.effort import Effort
from gradientdice.base.errors import InputError
from gradientdice.evaluation.rank import rank
from gradientdice.evaluation.ranking import BEHAVIOR, Ranking
from gradientdice.evaluation.shown import shown
from gradientdice.functions import Functions
from gradientdice.log.scanning.log import ScannedLog
from gradientdice.log.transitions import Transitions
from gradientdice.policies import Policy
from gradientdice.statistics.checks import Verdict, because
from gradientdice.statistics.simultaneous import joint_confidence

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Selection:
    """What to deploy.

    Attributes:
        choice: the name of the candidate to deploy; None to keep the baseline.
        reason: why, in a sentence.
        ranking: all candidates.
        better: those that are shown to be better than the baseline, best first.
    """

    choice: str | None
    reason: str
    ranking: Ranking
    better: tuple[str, ...]

    @property
    def keeps_baseline(self) -> bool:
        """Whether nothing is to be deployed."""
        return self.choice is None

    @property
    def verdict(self) -> Verdict:
        """The verdict of the choice; the worst of all candidates if the baseline is kept."""
        return self.ranking.verdict_on(self._judged)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdict is not better, each with the candidate's name."""
        return self.ranking.reasons_for(self._judged)

    @property
    def _judged(self) -> tuple[str, ...]:
        return self.ranking.names if self.choice is None else (self.choice,)

    def __str__(self) -> str:
        lines = [self.reason, *because(self.verdict, self.reasons, 11), "", self.ranking.text]
        return "\n".join(lines)

    __repr__ = __str__  # in a terminal an answer shows itself as `print` shows it

    def _repr_html_(self) -> str:
        return shown(self, "cell")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "choice": self.choice,
            "reason": self.reason,
            "better": list(self.better),
            "overall_verdict": str(self.verdict),
            "reasons": list(self.reasons),
            "ranking": self.ranking.to_dict(),
        }

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def plot(self) -> Figure:
        """The differences to the baseline; those that are shown to be better are coloured: a matplotlib figure."""
        return shown(self, "plot")

    def report(self, path: str | Path, *, force: bool = False) -> None:
        """Writes the ranking's report with the decision at its top; replaces a file only with `force`."""
        shown(self, "report", path, force=force)


def select(
    data: Transitions | ScannedLog,
    candidates: Mapping[str, Policy],
    discount: float,
    *,
    baseline: str = BEHAVIOR,
    functions: Functions | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    effort: Effort | str = Effort.NORMAL,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
) -> Selection:
    """Which candidate should be deployed, if any?

    The candidate with the highest value among those that are shown to be better than the baseline; none where there
    are none. The chance of deploying one that is no better is at most 1 − confidence. A candidate whose estimate is
    not to be trusted is never deployed.

    Args:
        data: the log, in memory or scanned.
        candidates: name -> policy.
        discount: γ; 1 is the average reward.
        baseline: what runs today: "behavior" is the policy that logged the data, or the name of a candidate.
        functions: as for `evaluate`.
        confidence: 1 less the largest chance of a false deployment.
        seed: for whatever is random.
        effort: "quick", "normal" or "thorough".
        progress: as for `evaluate`.
        checkpoint: as for `rank`.

    Raises:
        InputError: if the input cannot be used; the message says what would work.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp = gd.mdp.boyan_chain("continuing")
        >>> data = mdp.rollout(np.full((13, 2), 0.5), 200, 50, np.random.default_rng(0))
        >>> candidates = {
        ...     f"{p:g}": gd.TabularPolicy(np.tile([p, 1 - p], (13, 1))) for p in (0.1, 0.9)
        ... }
        >>> gd.select(data, candidates, discount=0.9).choice
        '0.1'
    """
    if not isinstance(discount, (int, float)):
        raise InputError("select needs one discount: what is best may be another candidate at another discount.")
    ranking = rank(
        data,
        candidates,
        discount,
        baseline=baseline,
        functions=functions,
        confidence=confidence,
        seed=seed,
        effort=effort,
        progress=progress,
        checkpoint=checkpoint,
    )
    return selected(ranking)


def selected(ranking: Ranking) -> Selection:
    """What follows from a ranking."""
    better = shown_better(ranking)
    trusted = [name for name in better if ranking.differences[name].verdict is not Verdict.DO_NOT_TRUST]
    kept = "the behaviour" if ranking.baseline == BEHAVIOR else repr(ranking.baseline)
    level = f"with {ranking.confidence:.0%} confidence over all {len(ranking.estimates)} candidates"
    if trusted:
        apart = ranking.differences[trusted[0]]
        reason = f"Deploy {trusted[0]!r}: it is shown to be better than {kept}, by {apart.text}, {level}."
        return Selection(trusted[0], reason, ranking, better)
    reason = f"Keep {kept}: no candidate is shown to be better, {level}."
    if better:
        reason = (
            f"Keep {kept}: only {', '.join(repr(name) for name in better)} would be better, and the estimate is not to "
            f"be trusted ({ranking.differences[better[0]].reasons[0]})."
        )
    return Selection(None, reason, ranking, better)


def shown_better(ranking: Ranking) -> tuple[str, ...]:
    """The candidates whose difference to the baseline is shown to be above 0, step by step; best first."""
    left = [name for name in ranking.names if name != ranking.baseline]
    better: set[str] = set()
    while left:
        sources = {name: ranking.differences[name].sources for name in left}
        confidence = joint_confidence(list(sources.values()), ranking.confidence, one_sided=True)
        new = [name for name in left if ranking.interval_at(sources[name], confidence)[0] > 0]
        if not new:
            break
        better.update(new)
        left = [name for name in left if name not in better]
    return tuple(name for name in ranking.names if name in better)
