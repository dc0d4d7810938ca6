"""From an answer to its interval: the sampling error, and room for all else that the log leaves open.

The interval starts as that of the influence values. It then has room for starts that a few initial states do not show,
and is widened for the misfit of searched features and for what a table's log does not contain. With searched features
an estimator other than the default also spans the default's interval, which alone allows for the search.

`error_sources` says what an interval is made of, and `whole_interval` makes it: that of a value, and that of a
difference of two (`evaluation/difference.py`), in the same way.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.stats import norm

from gradientdice.default.search import FunctionSearch
from gradientdice.estimators.answer import Answer
from gradientdice.problem.problem import Problem
from gradientdice.statistics.influence import Influence
from gradientdice.statistics.intervals import IntervalMethod, SkewInterval, skewness, standard_error
from gradientdice.statistics.log_tests import LogTests
from gradientdice.statistics.room import Room, UnseenStarts, margin
from gradientdice.statistics.shares import Samples
from gradientdice.statistics.small_samples import interval_shares
from gradientdice.statistics.sources import ErrorSources, Sources
from gradientdice.statistics.units import alike_starts, unseen_starts
from gradientdice.statistics.unlogged import unseen_outcomes

Ends = tuple[float, float]
# A few sums of numbers in double precision are off by no more than this share of the largest.
ROUNDING = 4 * float(np.finfo(np.float64).eps)


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
        sources: what it was made of.
    """

    ends: Ends
    sampling_error: float
    standard_error: float
    room: float
    sources: Sources


@dataclass(frozen=True, eq=False)
class ErrorShares:
    """The shares in an answer's error.

    Attributes:
        samples: by independent unit.
        alike: how many initial states there are, if they are few and alike, as they may be by chance; else None.
    """

    samples: Samples
    alike: int | None


def error_sources(
    log: LogTests,
    problem: Problem,
    discount: float,
    answer: Answer,
    intervals: Intervals,
    search: FunctionSearch | None,
) -> ErrorSources:
    """What the interval of an answer with influence values is made of.

    Args:
        log: what is known of the log alone.
        problem: what was answered.
        discount: γ.
        answer: with its evidence complete.
        intervals: how the sampling error's interval is made.
        search: the search that chose the answer's functions, if one did.
    """
    assert answer.influence is not None
    samples = interval_shares(answer.influence, problem)
    room = room_beside(log, problem, discount, answer, intervals.confidence, alike_starts(answer.influence))
    if search is not None:
        spanned = _spanned(samples, answer, search, intervals, problem)
        room = replace(room, spanned=spanned, spanned_at=intervals.confidence)
        if answer.of_search:
            room = replace(room, distances=search.chosen.distances, undirected=search.chosen.undirected)
    room = replace(room, answer=answer_digest(problem, answer.influence))
    return ErrorSources.of(answer.value, samples, room, problem.data.digest, problem.seed)


def room_beside(
    log: LogTests, problem: Problem, discount: float, answer: Answer, confidence: float, alike: int | None
) -> Room:
    """What an interval has room for beside sampling noise, for a log in memory and for a scanned one.

    Args:
        log: what is known of the log alone.
        problem: what was answered.
        discount: γ.
        answer: with its evidence complete.
        confidence: of the interval.
        alike: how many initial states there are, if they are few and alike; else None.
    """
    evidence = answer.evidence
    room = Room(
        misfit=evidence.allowance / margin(1.0, confidence),
        steps=evidence.unlogged_error,
        starts=_unseen_starts(problem, discount, alike),
    )
    if evidence.unlogged_error == 0 or problem.support is None:
        return room
    solved = problem.tabular_solution(discount)
    return replace(
        room,
        steps=(evidence.unlogged or 0.0) * solved.spread,
        outcomes=(unseen_outcomes(solved, log.repeats),),
    )


def answer_digest(problem: Problem, influence: Influence) -> str:
    """Equal for the same answer for the same policy.

    Influence values do not tell tables apart that differ in actions which were never logged alone.
    """
    found = hashlib.sha256(np.ascontiguousarray(influence.rows).data)
    if problem.support is not None and not problem.support.complete:
        found.update(np.ascontiguousarray(problem.support.probabilities).data)
    return found.hexdigest()


def whole_interval(sources: Sources, intervals: Intervals) -> WholeInterval:
    """The interval of a value or of a difference: that of the sampling error, with room for all else."""
    samples = sources.samples
    sampling, error = intervals.of(sources.value, samples, sources.seed), standard_error(samples)
    below, above = sources.room.sides(intervals.confidence)
    ends = sampling[0] - below, sampling[1] + above
    width = sampling[1] - sampling[0]
    # How many standard errors the sampling interval has to each side, on average.
    errors = width / (2 * error) if error > 0 and width > 0 else float(norm.ppf(0.5 + intervals.confidence / 2))
    return WholeInterval(ends, error, (ends[1] - ends[0]) / (2 * errors), max(0.0, min(below, above)), sources)


def interval_notes(sources: Sources, intervals: Intervals) -> tuple[str, ...]:
    """What the reader should know of how the interval was made."""
    return (*_skew_notes(sources.samples, intervals), *_start_notes(sources.room, intervals.confidence))


def _spanned(
    samples: Samples, answer: Answer, search: FunctionSearch, intervals: Intervals, problem: Problem
) -> tuple[float, float]:
    """How much further the default's interval reaches below and above, if the answer is another."""
    default = search.chosen.answer
    assert default.influence is not None
    if answer.of_search:
        return 0.0, 0.0
    own = intervals.of(answer.value, samples, problem.seed)
    low, high = intervals.of(default.value, interval_shares(default.influence, problem), problem.seed)
    # The ends are formed again from these distances: rounding must not leave the default's own outside.
    rounding = ROUNDING * max(abs(end) for end in (*own, low, high))
    return (own[0] - low + rounding if low < own[0] else 0.0, high - own[1] + rounding if high > own[1] else 0.0)


def _skew_notes(samples: Samples, intervals: Intervals) -> tuple[str, ...]:
    """That the interval is longer on one side, if it is."""
    if not (isinstance(intervals.method, SkewInterval) and intervals.method.applies(samples)):
        return ()
    side = "upper" if skewness(samples) > 0 else "lower"
    return (
        f"a few rows have large shares in the error (skewness {skewness(samples):.2g}), so that the interval's {side} "
        "end is further out than Student's (Hall's transformation)",
    )


def _unseen_starts(problem: Problem, discount: float, count: int | None) -> UnseenStarts | None:
    """Starts that a few initial states, all alike, do not show, with what a table's states are worth; else None."""
    if count is None or problem.support is None or discount == 1:
        return None
    solved = problem.tabular_solution(discount)
    if solved.initial_values is None:
        return None
    return UnseenStarts(count, (1 - discount) * (solved.values - float(solved.initial_values[0])))


def _start_notes(room: Room, confidence: float) -> tuple[str, ...]:
    """That the interval has room for other starts, if it has."""
    if room.starts is None:
        return ()
    return (
        f"the {room.starts.count} initial states are all alike, as they may be by chance: the interval has room for "
        f"other starts with a probability of up to {unseen_starts(room.starts.count, confidence):.2g}",
    )
