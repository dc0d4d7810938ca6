"""Tests of what every answer assumes about its log, gathered for the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gradientdice.estimators.answer import Answer, Estimator
from gradientdice.inference.checks import Check
from gradientdice.inference.copied import copied_rows
from gradientdice.inference.gaps import gap_check
from gradientdice.inference.late_actions import late_actions_check
from gradientdice.inference.markov import whole_state_checks
from gradientdice.inference.shifted import shifted_checks
from gradientdice.inference.small_samples import interval_shares
from gradientdice.inference.tails import tail_check
from gradientdice.inference.units import alike_starts, starts_check, units_check
from gradientdice.inference.unlogged import once_logged, repeats_of
from gradientdice.problem.problem import Problem


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


def _copies(problem: Problem, estimator: Estimator, answer: Answer) -> Iterable[Check]:
    """Whether rows are there several times."""
    return problem.once_for_log(("copies",), lambda: copied_rows(problem.data))


def _enough_observations(problem: Problem, estimator: Estimator, answer: Answer) -> Iterable[Check]:
    """Whether the error is shared by enough observations, as the influence values tell."""
    if answer.influence is None:
        return
    samples = interval_shares(answer.influence, problem)
    yield tail_check(samples, answer.evidence.room)
    yield units_check(samples)
    count = alike_starts(answer.influence)
    if count is not None:
        yield starts_check(count)


def _repeats(problem: Problem, estimator: Estimator, answer: Answer) -> Iterable[Check]:
    """With a table, whether pairs have rows enough to show how their outcomes vary."""
    if problem.support is not None and answer.ratio is not None:
        yield once_logged(problem.data, answer.ratio, repeats_of(problem))


# Each gives the checks that apply to an answer. One that looks at the log alone computes its figure once, with
# `problem.once_for_log`, since `compare` asks for every estimator's answer and `rank` for every policy's.
TESTS: tuple[Callable[[Problem, Estimator, Answer], Iterable[Check]], ...] = (
    _whole_state,
    _next_states,
    _columns,
    _copies,
    _enough_observations,
    _repeats,
)


def assumption_checks(problem: Problem, estimator: Estimator, answer: Answer) -> tuple[Check, ...]:
    """What the tests found."""
    return tuple(check for test in TESTS for check in test(problem, estimator, answer))
