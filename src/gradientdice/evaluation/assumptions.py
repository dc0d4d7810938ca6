"""Tests of what every answer assumes about its log, gathered for the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gradientdice.estimators.answer import Answer, Estimator
from gradientdice.inference.checks import Check
from gradientdice.inference.small_samples import FittedPairs, interval_shares
from gradientdice.inference.tails import tail_check
from gradientdice.inference.units import alike_starts, starts_check, units_check
from gradientdice.problem.problem import Problem


def enough_observations(problem: Problem, estimator: Estimator, answer: Answer) -> Iterable[Check]:
    """Whether the error is shared by enough observations, as the influence values tell."""
    if answer.influence is None:
        return
    samples = interval_shares(answer.influence, problem)
    yield tail_check(samples, answer.evidence.room)
    yield units_check(samples)
    count = alike_starts(answer.influence)
    if count is not None:
        yield starts_check(count)
    pairs = FittedPairs.of(answer.influence, problem)
    if pairs is not None:
        yield pairs.check()


# Each gives the checks that apply to an answer. One that looks at the log alone computes its figure once, with
# `problem.once`, since `compare` asks for every estimator's answer on one problem.
TESTS: tuple[Callable[[Problem, Estimator, Answer], Iterable[Check]], ...] = (enough_observations,)


def assumption_checks(problem: Problem, estimator: Estimator, answer: Answer) -> tuple[Check, ...]:
    """What the tests found."""
    return tuple(check for test in TESTS for check in test(problem, estimator, answer))
