"""Tests of what every answer assumes about its log, gathered for the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gradientdice.estimators.answer import Answer, Estimator
from gradientdice.evaluation.interval import ErrorShares
from gradientdice.problem.problem import Problem
from gradientdice.statistics.checks import Check
from gradientdice.statistics.intervals import tail_check
from gradientdice.statistics.log_tests import LogTests
from gradientdice.statistics.units import starts_check, units_check
from gradientdice.statistics.unlogged import once_logged

# Of an answer from a log: the log's own tests, what was answered, by which estimator, how.
Test = Callable[[LogTests, Problem, Estimator, Answer], Iterable[Check]]


def _whole_state(log: LogTests, problem: Problem, estimator: Estimator, answer: Answer) -> Iterable[Check]:
    """Whether the recorded state is the state, for answers that need it."""
    if not answer.evidence.markov:
        return ()
    shares = answer.influence if answer.evidence.bellman else None
    return log.markov.checks(problem, estimator.discount, None if shares is None else shares.residual)


def _next_states(log: LogTests, problem: Problem, estimator: Estimator, answer: Answer) -> Iterable[Check]:
    """Whether next states are those that followed, for answers that use them."""
    return () if estimator.discount == 0 or not answer.functions else log.next_states


def _columns(log: LogTests, problem: Problem, estimator: Estimator, answer: Answer) -> Iterable[Check]:
    """Whether actions belong to their rows, and whether rows are missing."""
    return log.columns


def _ends(log: LogTests, problem: Problem, estimator: Estimator, answer: Answer) -> Iterable[Check]:
    """Whether the log says how its episodes end, where more than one step counts."""
    return () if estimator.discount == 0 else log.ends


def _dropped(log: LogTests, problem: Problem, estimator: Estimator, answer: Answer) -> Iterable[Check]:
    """Whether outcomes were lost with rows that had to be dropped."""
    return log.dropped


def _copies(log: LogTests, problem: Problem, estimator: Estimator, answer: Answer) -> Iterable[Check]:
    """Whether rows are there several times."""
    return log.copies


# They look at rows and at what comes before and after them: a part of a large log shows as much.
ROW_TESTS: tuple[Test, ...] = (_whole_state, _next_states, _columns, _ends, _dropped, _copies)


def row_checks(log: LogTests, problem: Problem, estimator: Estimator, answer: Answer) -> tuple[Check, ...]:
    """What the tests of rows found."""
    return tuple(check for test in ROW_TESTS for check in test(log, problem, estimator, answer))


def assumption_checks(
    log: LogTests, problem: Problem, estimator: Estimator, answer: Answer, shares: ErrorShares | None
) -> tuple[Check, ...]:
    """What all tests found; `shares` are those of the answer's error, None without influence values."""
    found = row_checks(log, problem, estimator, answer)
    observed = () if shares is None else enough_observations(shares, answer.evidence.room)
    return (*found, *observed, *repeats(log, problem, answer))


def enough_observations(shares: ErrorShares, room: float) -> Iterable[Check]:
    """The same from the shares; `room` is how much wider the interval is than their sampling noise makes it."""
    yield tail_check(shares.samples, room)
    yield units_check(shares.samples)
    if shares.alike is not None:
        yield starts_check(shares.alike)


def repeats(log: LogTests, problem: Problem, answer: Answer) -> Iterable[Check]:
    """With a table, whether pairs have rows enough to show how their outcomes vary."""
    if problem.support is not None and answer.ratio is not None:
        yield once_logged(problem.data, answer.ratio, log.repeats)
