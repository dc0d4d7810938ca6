"""`segments`: a policy's value by group of initial states, or by group of the log's rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gradientdice.base.arrays import as_array
from gradientdice.base.effort import Effort, require_effort
from gradientdice.base.errors import InputError, first_bad_row, require_choice, starts_missing
from gradientdice.default.search import Searching
from gradientdice.dice.saddle import SaddleObjective
from gradientdice.estimators.answer import Estimator
from gradientdice.evaluation.baseline import AskedLog
from gradientdice.evaluation.estimate import Estimate
from gradientdice.evaluation.estimators import chosen_estimator
from gradientdice.evaluation.finish import finish
from gradientdice.evaluation.interval import Intervals
from gradientdice.evaluation.segments.result import Segment, Segments
from gradientdice.evaluation.segments.rows import Group, Part, quotient, row_parts, weighted_mean
from gradientdice.evaluation.segments.starts import start_parts
from gradientdice.functions import Functions
from gradientdice.log.transitions import Transitions
from gradientdice.policies import Policy
from gradientdice.problem.entrance import explained_starts
from gradientdice.problem.problem import Problem
from gradientdice.statistics.checks import Verdict, worst_verdict
from gradientdice.statistics.influence import Influence
from gradientdice.statistics.intervals import require_confidence
from gradientdice.statistics.small_samples import interval_shares
from gradientdice.statistics.units import ENOUGH

# Every group is solved for by itself, and a label per row is a mistake.
MOST_GROUPS = 200


def segments(
    data: Transitions,
    policy: Policy,
    estimator: Estimator | SaddleObjective | None = None,
    *,
    by: ArrayLike,
    of: str = "starts",
    discount: float | None = None,
    functions: Functions | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    effort: Effort | str = Effort.NORMAL,
) -> Segments:
    """A policy's value by segment, with intervals; shares × values add up to the whole.

    Args:
        data: the log.
        policy: the policy to evaluate.
        estimator: as in `evaluate`. Groups of starts need the default, or one with a closed form.
        by: the label of each initial state, for starts (or of each row, if the initial states are the first of each
            episode); the label of each row, for rows. Any column of the log will do.
        of: "starts": the value of the target when it starts in the group. "rows": what the target earns in the group's
            rows, as the share of its time there and what a step there earns; at the end of an episode nothing is
            earned, so that below discount 1 the shares of time add up to less than 1 where episodes end.
        discount: γ.
        functions: as in `evaluate`.
        confidence: of each interval.
        seed: for whatever is random.
        effort: as in `evaluate`.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("episodic"), np.tile([0.1, 0.9], (13, 1))
        >>> data = mdp.sample(5000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> found = gd.segments(
        ...     data, gd.TabularPolicy(target), by=data.initial_states > 6, discount=0.9
        ... )
        >>> (
        ...     [str(group.group) for group in found.groups],
        ...     bool(np.isclose(found.total, found.whole.value)),
        ... )
        (['False', 'True'], True)
    """
    require_choice("of", of, "starts", "rows")
    intervals = Intervals(confidence=require_confidence(confidence))
    chosen = chosen_estimator(estimator, discount)
    problem = Problem(data, policy, functions, seed, Searching(chosen.discount), effort=require_effort(effort))
    groups = _groups(data, by, of)
    with explained_starts(data, policy):
        answer = chosen.answer(problem)
        if answer.influence is None:
            raise InputError(f"{type(chosen).__name__} gives no influence values here, and so no segments.")
        whole = finish(AskedLog.of(problem), problem, chosen, answer, intervals)
        made = _Making(
            problem, whole.verdict, intervals, _room(problem, whole, intervals, answer.value, answer.influence)
        )
        if of == "starts":
            parts = start_parts(problem, chosen, answer, groups)
            found = [made.start(group, part) for group, part in zip(groups, parts, strict=True)]
        else:
            found = [made.row(group, *row_parts(problem, chosen, answer, group)) for group in groups]
    rest = answer.value - sum(segment.contribution for segment in found)
    few = _few_units(found)
    result = Segments(of, tuple(found), whole, rest, few)
    if not result.has_rest:
        return result
    note = (
        "the rest is what the doubly robust correction adds to the whole beside the groups"
        if of == "rows"
        else "the estimate is not linear in the initial distribution, so that the groups leave a rest"
    )
    return Segments(of, tuple(found), whole, rest, (*few, note))


def _few_units(found: list[Segment]) -> tuple[str, ...]:
    """A note that names the groups with few units, and how many they have."""
    few = [f"{segment.group} ({segment.units})" for segment in found if segment.units < ENOUGH]
    if not few:
        return ()
    return (f"fewer than {ENOUGH} independent units, so that the interval is hardly known: {', '.join(few)}",)


@dataclass(frozen=True, eq=False)
class _Making:
    """From parts to segments with intervals."""

    problem: Problem
    verdict: Verdict
    intervals: Intervals
    room: tuple[float, float]

    def start(self, group: Group, part: Part) -> Segment:
        """A group of initial states; its share is taken as known."""
        weights = self.problem.data.start_weights
        assert weights is not None
        share = weighted_mean(group.members * 1.0, weights)
        low, high = self._interval(part, 1.0)
        ends = share * part.value, share * low, share * high
        units = self._judged(self._starts(group))
        return Segment(group.name, int(group.members.sum()), share, part.value, low, high, *ends, *units)

    def row(self, group: Group, earned: Part, time: Part) -> Segment:
        """A group of rows; a group that the target never visits earns nothing, and its value is not known."""
        contribution = (earned.value, *self._interval(earned, 1.0))
        count = int(group.members.sum())
        units = self._judged(_different(self.problem.data.units.rows[group.members]))
        if time.value <= 0:
            return Segment(group.name, count, time.value, np.nan, np.nan, np.nan, *contribution, *units)
        each = quotient(earned, time)
        ends = self._interval(each, 1 / time.value)
        return Segment(group.name, count, time.value, each.value, *ends, *contribution, *units)

    def _starts(self, group: Group) -> int:
        """How many independent units begin in a group: initial states that are given are a unit each."""
        data = self.problem.data
        weights = data.start_weights
        assert weights is not None
        counted = group.members & (weights > 0)
        if data.initial_states is not None:
            return int(counted.sum())
        return _different(data.units.rows[data.first_rows][counted])

    def _judged(self, units: int) -> tuple[int, Verdict]:
        return units, worst_verdict([self.verdict, Verdict.CAUTION if units < ENOUGH else Verdict.TRUST])

    def _interval(self, part: Part, scale: float) -> tuple[float, float]:
        samples = interval_shares(part.influence, self.problem)
        low, high = self.intervals.of(part.value, samples, self.problem.seed)
        return low - scale * self.room[0], high + scale * self.room[1]


def _different(units: np.ndarray) -> int:
    """How many different units there are; rows that count 0 times belong to none."""
    return len(np.unique(units[units >= 0]))


def _room(
    problem: Problem, whole: Estimate, intervals: Intervals, value: float, shares: Influence
) -> tuple[float, float]:
    """How much wider than its sampling noise the whole's interval is on each side: the groups get as much."""
    assert whole.interval is not None
    low, high = intervals.of(value, interval_shares(shares, problem), problem.seed)
    return max(0.0, low - whole.interval[0]), max(0.0, whole.interval[1] - high)


def _groups(data: Transitions, by: ArrayLike, of: str) -> list[Group]:
    """The groups that labels make of the initial states, or of the rows."""
    labels = _as_labels(by)
    if labels.ndim != 1:
        raise InputError(f"by must have one dimension, a label for each of the {of}, not shape {labels.shape}.")
    starts = data.start_states
    if of == "starts":
        if starts is None:
            raise starts_missing(0.5)
        if data.initial_states is None and len(labels) == len(data):
            labels = labels[data.first_rows]
    size = len(data) if of == "rows" or starts is None else len(starts)
    if len(labels) != size:
        raise InputError(f"by has {len(labels)} labels, and there are {size} {of}: give one for each.")
    weights = data.row_weights if of == "rows" else data.start_weights
    assert weights is not None
    names, index = np.unique(labels, return_inverse=True)
    if len(names) > MOST_GROUPS:
        raise InputError(f"by makes {len(names)} groups, and at most {MOST_GROUPS} are possible: put labels together.")
    groups = [Group(name, index == number) for number, name in enumerate(names.tolist())]
    # A group that counts 0 times has no value.
    return [group for group in groups if weights[group.members].any()]


def _as_labels(by: ArrayLike) -> np.ndarray:
    """Labels as an array: texts, numbers or dates; an error if one is missing, as NaN or None, or something else."""
    labels = as_array("by", by, copy=False)
    missing = np.isnan(labels) if labels.dtype.kind == "f" else np.isnat(labels) if labels.dtype.kind in "mM" else None
    if labels.dtype.kind == "O":
        missing = np.array([not isinstance(label, str) for label in labels.flat]).reshape(labels.shape)
        labels = labels if missing.any() else labels.astype(str)
    if labels.dtype.kind in "cV" or (missing is not None and missing.any()):
        row = first_bad_row(missing) if missing is not None and missing.ndim else 0
        raise InputError(
            f"by must have a label for each of them, a text, a number or a date, first not in row {row}. Name what is "
            "missing, or drop such rows."
        )
    return labels
