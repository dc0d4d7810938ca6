"""Tests of what every answer assumes about its log, gathered for the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gradientdice.estimators.answer import Answer, Estimator
from gradientdice.inference.checks import Check
from gradientdice.inference.unlogged import once_logged, repeats_of
from gradientdice.problem.problem import Problem


def _repeats(problem: Problem, _: Estimator, answer: Answer) -> Iterable[Check]:
    """With a table, whether pairs have rows enough to show how their outcomes vary."""
    if problem.support is None or answer.ratio is None:
        return []
    return [once_logged(problem.data, answer.ratio, repeats_of(problem))]


# Each gives the checks that apply to an answer. One that looks at the log alone computes its figure once, with
# `problem.once`, since `compare` asks for every estimator's answer on one problem.
TESTS: tuple[Callable[[Problem, Estimator, Answer], Iterable[Check]], ...] = (_repeats,)


def assumption_checks(problem: Problem, estimator: Estimator, answer: Answer) -> tuple[Check, ...]:
    """What the tests found."""
    return tuple(check for test in TESTS for check in test(problem, estimator, answer))
