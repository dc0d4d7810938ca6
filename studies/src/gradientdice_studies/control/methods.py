"""What is compared: name -> function from a log, a policy and discounts to answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from gradientdice.base.effort import Effort
from gradientdice.default.model.rollouts import ModelRollouts, model_values
from gradientdice.default.search import Searching, searched_functions
from gradientdice.estimators.answer import Answer, Estimator
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.estimators.value.fqe import FQE
from gradientdice.evaluation.baseline import AskedLog
from gradientdice.evaluation.estimate import Estimate
from gradientdice.evaluation.estimators import chosen_estimator
from gradientdice.evaluation.finish import finish
from gradientdice.evaluation.interval import Intervals
from gradientdice.functions import Functions
from gradientdice.functions.kernel import RandomFourier
from gradientdice.functions.mlp import MLP
from gradientdice.log.transitions import Transitions
from gradientdice.policies import Policy
from gradientdice.problem.problem import Problem
from gradientdice.statistics.small_samples import interval_shares
from gradientdice_studies.control.improvement import Improvement, improvement
from gradientdice_studies.control.previous import PreviousDefault, SpanningInterval, previous_searches

CONFIDENCE = 0.95
# Moderate: a bandwidth of 1 in standardised inputs, and as many features as solve within seconds at 10⁵ rows.
KERNEL = RandomFourier(300, bandwidth=1.0)


@dataclass(frozen=True)
class Answered:
    """One answer.

    Attributes:
        estimate: as `evaluate` gives it.
        difference: to the behaviour; None without an interval.
        seconds: what it took; where discounts share the work, an equal part of all of it.
    """

    estimate: Estimate
    difference: Improvement | None
    seconds: float


# Takes a log, a policy, discounts and a seed.
Method = Callable[[Transitions, Policy, Sequence[float], int], list[Answered]]


def answer_each(
    make: Callable[[float], Estimator],
    functions: Functions | None,
    data: Transitions,
    policy: Policy,
    discounts: Sequence[float],
    seed: int,
) -> list[Answered]:
    """One discount after the other, as a user would ask."""
    return [
        _answered(
            Problem(data, policy, functions, seed, Searching(discount)),
            make(discount),
            Intervals(confidence=CONFIDENCE),
        )
        for discount in discounts
    ]


def default_answers(
    data: Transitions, policy: Policy, discounts: Sequence[float], seed: int, effort: Effort = Effort.NORMAL
) -> list[Answered]:
    """The library's default; discounts share the passes over the log and the learned model."""
    started = time.perf_counter()
    problem = Problem(data, policy, seed=seed, effort=effort)
    searches = searched_functions(problem, discounts)
    shared = (time.perf_counter() - started) / len(discounts)
    answered = []
    for discount, search in zip(discounts, searches, strict=True):
        known = replace(problem, search=lambda _, found=search: found)
        found = _answered(known, chosen_estimator(None, discount), Intervals(confidence=CONFIDENCE))
        answered.append(replace(found, seconds=found.seconds + shared))
    return answered


def model_answers(data: Transitions, policy: Policy, discounts: Sequence[float], seed: int) -> list[Answered]:
    """A learned model by itself; discounts share it."""
    started = time.perf_counter()
    problem = Problem(data, policy, seed=seed)
    found = model_values(problem, discounts)
    seconds = (time.perf_counter() - started) / len(discounts)
    asked, intervals = AskedLog.of(problem), Intervals(confidence=CONFIDENCE)
    return [
        Answered(finish(asked, problem, ModelRollouts(discount), answer, intervals), None, seconds)
        for discount, answer in zip(discounts, found, strict=True)
    ]


def previous_answers(data: Transitions, policy: Policy, discounts: Sequence[float], seed: int) -> list[Answered]:
    """The previous default; discounts share the search's passes over the log."""
    started = time.perf_counter()
    problem = Problem(data, policy, seed=seed)
    searches = previous_searches(problem, discounts)
    shared = (time.perf_counter() - started) / len(discounts)
    answered = []
    for discount, search in zip(discounts, searches, strict=True):
        known = problem.using(search.chosen.functions)
        intervals = Intervals(SpanningInterval(known, search), CONFIDENCE)
        found = _answered(known, PreviousDefault(discount, search, CONFIDENCE), intervals)
        # What the interval spans beside its sampling noise has no standard error of its own.
        estimate = replace(found.estimate, standard_error=None)
        answered.append(replace(found, estimate=estimate, seconds=found.seconds + shared))
    return answered


def _answered(problem: Problem, estimator: Estimator, intervals: Intervals) -> Answered:
    """The estimate as `evaluate` makes it, with the difference to the behaviour, for which it needs the influences."""
    started = time.perf_counter()
    answer = estimator.answer(problem)
    estimate = finish(AskedLog.of(problem), problem, estimator, answer, intervals)
    seconds = time.perf_counter() - started
    return Answered(estimate, difference(problem, answer, estimate), seconds)


def difference(problem: Problem, answer: Answer, estimate: Estimate) -> Improvement | None:
    """The paired difference to the behaviour; what widens the value's interval widens it too."""
    if answer.influence is None or estimate.interval is None:
        return None
    samples = interval_shares(answer.influence, problem)
    low, high = Intervals(confidence=CONFIDENCE).of(answer.value, samples, problem.seed)
    room = max(0.0, low - estimate.interval[0]), max(0.0, estimate.interval[1] - high)
    return improvement(problem.data, estimate.discount, estimate.value, samples, CONFIDENCE, room)


# Those that train networks beside the default, which is what most of the time goes to.
NETWORKS = ("FQE", "model alone")


def methods() -> dict[str, Method]:
    """All methods; the first is the library's default."""
    return {
        "default": default_answers,
        "previous default": previous_answers,
        "kernel closed form": partial(answer_each, GradientDICE, KERNEL),
        "FQE": partial(answer_each, FQE, MLP()),
        "model alone": model_answers,
    }
