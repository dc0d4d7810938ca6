"""Linear features over a scanned log: moments in one pass, shares of the error in another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradientdice.default.automatic import Automatic
from gradientdice.dice.closed_form import ClosedForm, require_linear
from gradientdice.estimators.answer import Answer
from gradientdice.estimators.saddle.estimator import FEATURES_ASSUMED, fit_answer
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.estimators.value.lstdq import LSTDQ, same_flow
from gradientdice.evaluation.interval import Intervals
from gradientdice.evaluation.named import named
from gradientdice.evaluation.scan.behavior import behavior_side
from gradientdice.evaluation.scan.facts import SampleTests, Seen, alike_starts, moved, scanned_estimate, with_behaviors
from gradientdice.evaluation.scan.questions import Columns, Question, ScannedEstimates
from gradientdice.evaluation.scan.score import scored_by_pass
from gradientdice.functions import LinearFunctions
from gradientdice.policies import StatePolicy
from gradientdice.problem.absorbing import ABSORBING_SHARE
from gradientdice.problem.entrance import explained_starts
from gradientdice.problem.moments import Moments
from gradientdice.problem.problem import Problem, describe
from gradientdice.problem.scan.asked import largest_reward
from gradientdice.problem.scan.first import ByDiscount, first_sums
from gradientdice.problem.scan.moments import BatchFeatures, batch_features, finished_moments, moment_pass
from gradientdice.statistics.bellman import bellman_misfit
from gradientdice.statistics.influence import Influence
from gradientdice.statistics.scan.scorers import LinearScorer, Scorer


@dataclass(frozen=True, eq=False)
class _Summed:
    """The first pass for one policy.

    Attributes:
        sums: by discount.
        moments: the log's.
        features: behind them.
    """

    sums: ByDiscount
    moments: Moments
    features: BatchFeatures


def linear_estimates(
    questions: Sequence[Question], functions: LinearFunctions, intervals: Intervals
) -> ScannedEstimates:
    """The estimates with linear features; policies, discounts and estimators share each pass over the log."""
    asked = questions[0].asked
    discounts = list(dict.fromkeys(question.discount for question in questions))
    summed = _summed(questions, functions, discounts)
    answered = [_answered(question, summed[question.asked.policy]) for question in questions]
    first = summed[asked.policy]
    known = [behavior_side(asked, discount, sums, None) for discount, sums in first.sums.items()]
    sides = [side for side in known if side is not None]
    columns = Columns.of(questions, [scorer for _, scorer in answered], sides)
    scored = scored_by_pass(asked, columns, first.sums[discounts[0]], first.features.states)
    tests, estimates = SampleTests(asked, first.features.functions), []
    for place, (question, (answer, scorer)) in enumerate(zip(questions, answered, strict=True)):
        sums, problem = summed[question.asked.policy].sums[question.discount], tests.problem(question.asked)
        answer = replace(answer, evidence=replace(answer.evidence, misfit=_misfit(problem, scorer)))
        alike = alike_starts(scorer, place, sums, scored)
        checks, notes = tests.found(question, answer, scorer)
        moves = moved(scored, place, asked.log.books.get("state_columns"))
        seen = Seen(sums, scored.joint, place + 1, alike, scored.masses[place], moves, checks, notes)
        estimates.append(scanned_estimate(tests.log, question, problem, answer, intervals, seen))
    return with_behaviors(estimates, sides, columns, scored)


def _summed(
    questions: Sequence[Question], functions: LinearFunctions, discounts: list[float]
) -> dict[StatePolicy, _Summed]:
    """The moments of each policy, in one pass over the log."""
    by_policy: dict[StatePolicy, Question] = {}
    for question in questions:
        by_policy.setdefault(question.asked.policy, question)
    asked = questions[0].asked
    features = [batch_features(question.asked, functions) for question in by_policy.values()]
    found = first_sums(asked, [moment_pass(asked, own) for own in features], discounts)
    largest_reward(found[0][discounts[0]])
    summed = {}
    for (policy, question), own, sums in zip(by_policy.items(), features, found, strict=True):
        with named(question.name):
            summed[policy] = _Summed(sums, *finished_moments(question.asked, own, sums[discounts[0]]))
    return summed


def _answered(question: Question, summed: _Summed) -> tuple[Answer, LinearScorer]:
    asked, estimator, features = question.asked, question.estimator, summed.features
    solved = _solved(estimator)
    with named(question.name), explained_starts(asked.log.sample, asked.policy):
        fit = ClosedForm().fit_moments(solved, summed.moments)
    row_share = 1 - ABSORBING_SHARE if features.absorbing and question.discount < 1 else 1.0
    answer = fit_answer(solved, fit, describe(features.functions), (FEATURES_ASSUMED,))
    if isinstance(estimator, Automatic):
        answer = replace(answer, method=repr(solved))
    return answer, LinearScorer(fit, summed.moments, features, row_share)


def _solved(estimator: Any) -> Any:
    """What the closed form solves."""
    if isinstance(estimator, Automatic):
        return GradientDICE(estimator.discount)
    return same_flow(estimator.discount) if isinstance(estimator, LSTDQ) else require_linear(estimator)


def _misfit(problem: Problem, scorer: Scorer) -> float:
    """The Bellman misfit of the fit, on the sample."""
    scores = scorer.rows(problem.data)
    shares = Influence(scores.shares, None, scores.ratio, scores.residual)
    return bellman_misfit(problem.rows, shares, problem.seed)
