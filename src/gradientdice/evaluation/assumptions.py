"""Tests of what every answer assumes about its log, gathered for the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gradientdice.estimators.answer import Answer, Estimator
from gradientdice.evaluation.interval import ErrorShares
from gradientdice.problem.problem import Problem
from gradientdice.statistics.checks import Check
from gradientdice.statistics.copied import copied_rows
from gradientdice.statistics.gaps import gap_check
from gradientdice.statistics.late_actions import late_actions_check
from gradientdice.statistics.markov import whole_state_checks
from gradientdice.statistics.recorded_ends import after_ends_check, dropped_rows_check, unrecorded_ends_check
from gradientdice.statistics.shifted import shifted_checks
from gradientdice.statistics.tails import tail_check
from gradientdice.statistics.units import starts_check, units_check
from gradientdice.statistics.unlogged import once_logged, repeats_of


def _whole_state(problem: Problem, estimator: Estimator, answer: Answer) -> Iterable[Check]:
    """Whether the recorded state is the state, for answers that need it."""
    if not answer.evidence.markov:
        return ()
    shares = answer.influence if answer.evidence.bellman else None
    return whole_state_checks(problem, estimator.discount, None if shares is None else shares.residual)


def _next_states(problem: Problem, estimator: Estimator, answer: Answer) -> Iterable[Check]:
    """Whether next states are those that followed, for answers that use them."""
    if estimator.discount == 0 or not answer.functions:
        return ()
    return problem.once_for_log(("next states",), lambda: shifted_checks(problem.data))


def _columns(problem: Problem, estimator: Estimator, answer: Answer) -> Iterable[Check]:
    """Whether actions belong to their rows, and whether rows are missing."""

    def found() -> list[Check]:
        checks = late_actions_check(problem.data, problem.seed), gap_check(problem.data)
        return [check for check in checks if check is not None]

    return problem.once_for_log(("columns",), found)


def _ends(problem: Problem, estimator: Estimator, answer: Answer) -> Iterable[Check]:
    """Whether the log says how its episodes end, where more than one step counts."""
    if estimator.discount == 0:
        return []
    checks = unrecorded_ends_check, after_ends_check
    found = problem.once_for_log(("ends",), lambda: [check(problem.data) for check in checks])
    return [check for check in found if check is not None]


def _dropped(problem: Problem, estimator: Estimator, answer: Answer) -> Iterable[Check]:
    """Whether outcomes were lost with rows that had to be dropped."""
    found = dropped_rows_check(problem.data)
    return [] if found is None else [found]


def _copies(problem: Problem, estimator: Estimator, answer: Answer) -> Iterable[Check]:
    """Whether rows are there several times."""
    return problem.once_for_log(("copies",), lambda: copied_rows(problem.data))


def _enough_observations(problem: Problem, estimator: Estimator, answer: Answer) -> Iterable[Check]:
    """Whether the error is shared by enough observations, as the influence values tell."""
    if answer.influence is None:
        return
    yield from enough_observations(ErrorShares.of(answer.influence, problem), answer.evidence.room)


def enough_observations(shares: ErrorShares, room: float) -> Iterable[Check]:
    """The same from the shares; `room` is how much wider the interval is than their sampling noise makes it."""
    yield tail_check(shares.samples, room)
    yield units_check(shares.samples)
    if shares.alike is not None:
        yield starts_check(shares.alike)


def repeats(problem: Problem, estimator: Estimator, answer: Answer) -> Iterable[Check]:
    """With a table, whether pairs have rows enough to show how their outcomes vary."""
    if problem.support is not None and answer.ratio is not None:
        yield once_logged(problem.data, answer.ratio, repeats_of(problem))


# Each gives the checks that apply to an answer. One that looks at the log alone computes its figure once, with
# `problem.once_for_log`, since `compare` asks for every estimator's answer and `rank` for every policy's.
Test = Callable[[Problem, Estimator, Answer], Iterable[Check]]
# Those that look at rows and at what comes before and after them: a part of a large log shows as much.
ROW_TESTS: tuple[Test, ...] = (_whole_state, _next_states, _columns, _ends, _dropped, _copies)
TESTS: tuple[Test, ...] = (*ROW_TESTS, _enough_observations, repeats)


def assumption_checks(
    problem: Problem, estimator: Estimator, answer: Answer, tests: tuple[Test, ...] = TESTS
) -> tuple[Check, ...]:
    """What the tests found."""
    return tuple(check for test in tests for check in test(problem, estimator, answer))
