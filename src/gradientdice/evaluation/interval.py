"""From an answer to its interval: the sampling error, and room for all else that the log leaves open.

The interval starts as that of the influence values. It then has room for starts that a few initial states do not show,
and is widened for the misfit of searched features and for what a table's log does not contain. With searched features
an estimator other than the default also spans the default's interval, which alone allows for the search.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from scipy.stats import norm

from gradientdice.estimators.answer import Answer
from gradientdice.estimators.doubly_robust.search import FunctionSearch
from gradientdice.inference.influence import Influence
from gradientdice.inference.intervals import IntervalMethod, standard_error
from gradientdice.inference.share_sums import Samples
from gradientdice.inference.skew_interval import SkewInterval
from gradientdice.inference.small_samples import interval_shares
from gradientdice.inference.tails import skewness
from gradientdice.inference.units import alike_starts, unseen_starts
from gradientdice.problem.problem import Problem

Ends = tuple[float, float]


@dataclass(frozen=True)
class Intervals:
    """How intervals are made.

    Attributes:
        method: from influence values to an interval.
        confidence: of the interval.
        required: whether the user asked for this method, so that an answer without influence values is refused.
    """

    method: IntervalMethod = field(default_factory=SkewInterval)
    confidence: float = 0.95
    required: bool = False

    def of(self, value: float, samples: Samples, seed: int) -> Ends:
        """The interval of the sampling error alone."""
        return self.method.interval(value, samples, self.confidence, seed)


@dataclass(frozen=True)
class WholeInterval:
    """An interval with everything in it.

    Attributes:
        ends: (low, high).
        sampling_error: the standard error of the sampling noise alone.
        standard_error: the same with all else that widens the interval: as many of them as there would be sampling
            errors in an interval of sampling noise.
        room: how much wider it is than sampling noise alone would make it, on the side where that is less.
        notes: how it was made.
    """

    ends: Ends
    sampling_error: float
    standard_error: float
    room: float
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ErrorShares:
    """The shares in an answer's error.

    Attributes:
        samples: by independent unit.
        alike: how many initial states there are, if they are few and alike, as they may be by chance; else None.
    """

    samples: Samples
    alike: int | None

    @classmethod
    def of(cls, influence: Influence, problem: Problem) -> ErrorShares:
        """Those of a log in memory."""
        return cls(interval_shares(influence, problem), alike_starts(influence))


def whole_interval(
    problem: Problem,
    discount: float,
    answer: Answer,
    intervals: Intervals,
    shares: ErrorShares,
    search: FunctionSearch | None = None,
) -> WholeInterval:
    """The interval of an answer with influence values.

    Args:
        problem: what was answered.
        discount: γ.
        answer: with its evidence complete.
        intervals: how the sampling error's interval is made.
        shares: in the answer's error.
        search: the search that chose the answer's functions, if one did.
    """
    samples = shares.samples
    sampling, error = intervals.of(answer.value, samples, problem.seed), standard_error(samples)
    low, high = sampling if search is None else _spanned(sampling, answer, search, intervals, problem)
    below, above, notes = _unseen_starts(problem, discount, shares.alike, intervals.confidence)
    margin = answer.evidence.allowance + answer.evidence.unlogged_error
    ends = low - below - margin, high + above + margin
    width = sampling[1] - sampling[0]
    # How many standard errors the sampling interval has to each side, on average.
    errors = width / (2 * error) if error > 0 and width > 0 else float(norm.ppf(0.5 + intervals.confidence / 2))
    notes = (*_skew_notes(samples, intervals), *notes)
    room = max(0.0, min(sampling[0] - ends[0], ends[1] - sampling[1]))
    return WholeInterval(ends, error, (ends[1] - ends[0]) / (2 * errors), room, notes)


def _spanned(interval: Ends, answer: Answer, search: FunctionSearch, intervals: Intervals, problem: Problem) -> Ends:
    """The interval widened to the default's, if the answer is another."""
    default = search.chosen.answer
    assert default.influence is not None
    if answer.influence is default.influence:
        return interval
    samples = interval_shares(default.influence, problem)
    low, high = intervals.of(default.value, samples, problem.seed)
    return min(interval[0], low), max(interval[1], high)


def _skew_notes(samples: Samples, intervals: Intervals) -> tuple[str, ...]:
    """That the interval is longer on one side, if it is."""
    if not (isinstance(intervals.method, SkewInterval) and intervals.method.applies(samples)):
        return ()
    side = "upper" if skewness(samples) > 0 else "lower"
    return (
        f"a few rows have large shares in the error (skewness {skewness(samples):.2g}), so that the interval's {side} "
        "end is further out than Student's (Hall's transformation)",
    )


def _unseen_starts(
    problem: Problem, discount: float, count: int | None, confidence: float
) -> tuple[float, float, tuple[str, ...]]:
    """Room below and above for starts that a few initial states, all alike, do not show; and a note.

    With a table, they are worth no more than the best of its states and no less than the worst.
    """
    if count is None or problem.support is None or discount == 1:
        return 0.0, 0.0, ()
    solved = problem.tabular_solution(discount)
    if solved.initial_values is None:
        return 0.0, 0.0, ()
    unseen, here = unseen_starts(count, confidence), float(solved.initial_values[0])
    scale = (1 - discount) * unseen
    note = (
        f"the {count} initial states are all alike, as they may be by chance: the interval has room for other starts "
        f"with a probability of up to {unseen:.2g}"
    )
    return (
        scale * max(0.0, here - float(solved.values.min())),
        scale * max(0.0, float(solved.values.max()) - here),
        (note,),
    )
