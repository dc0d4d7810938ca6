"""Linear features over a scanned log: moments in one pass, shares of the error in another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gradientdice.data.scan.passes import Sums
from gradientdice.estimators.answer import Estimator
from gradientdice.estimators.doubly_robust.automatic import Automatic
from gradientdice.estimators.saddle.estimator import FEATURES_ASSUMED, fit_answer
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.estimators.value.lstdq import LSTDQ, same_flow
from gradientdice.evaluation.estimate import Estimate
from gradientdice.evaluation.interval import Intervals
from gradientdice.evaluation.scan.facts import Seen, error_shares, sample_checks, scanned_estimate
from gradientdice.functions import LinearFunctions
from gradientdice.inference.influence import Influence
from gradientdice.inference.misfit import bellman_misfit
from gradientdice.inference.movement import Movement, mean_movements
from gradientdice.inference.scan.score_pass import ScorePass, mass_sums, share_sums
from gradientdice.inference.scan.scorers import LinearScorer
from gradientdice.problem.absorbing import ABSORBING_SHARE
from gradientdice.problem.entrance import explained_starts
from gradientdice.problem.problem import Problem, describe
from gradientdice.problem.scan.asked import Asked, largest_reward, share_unit
from gradientdice.problem.scan.moments import BatchFeatures, summed_moments
from gradientdice.solvers.closed_form import ClosedForm, require_linear


def linear_estimate(asked: Asked, functions: LinearFunctions, estimator: Estimator, intervals: Intervals) -> Estimate:
    """The estimate with linear features."""
    discount, log = estimator.discount, asked.log
    solved = _solved(estimator)
    sums, moments, features = summed_moments(asked, functions, discount)
    largest_reward(sums)
    with explained_starts(log.sample, asked.policy):
        fit = ClosedForm().fit_moments(solved, moments)
    row_share = 1 - ABSORBING_SHARE if features.absorbing and discount < 1 else 1.0
    scorer = LinearScorer(fit, moments, features, row_share)
    unit, size = share_unit(sums), int(sums["rows"][0])
    found = asked.summed(
        lambda spill: ScorePass(
            spill, scorer=scorer, unit=unit, size=size, starts=asked.has_first_states, as_states=features.states
        )
    )
    shares = error_shares(share_sums(found, "share", unit), share_sums(found, "initial", unit), sums, found)
    answer = fit_answer(solved, fit, describe(features.functions), (FEATURES_ASSUMED,))
    if isinstance(estimator, Automatic):
        answer = replace(answer, method=repr(solved))
    answer = replace(answer, evidence=replace(answer.evidence, misfit=_misfit(asked, features, scorer)))
    checks, notes = sample_checks(asked, features.functions, estimator, answer, scorer)
    seen = Seen(sums, shares, mass_sums(found, size), _movements(found, log.books.get("state_columns")), checks, notes)
    sample = Problem(log.sample, asked.policy, features.functions, asked.seed)
    return scanned_estimate(asked, sample, estimator, answer, intervals, seen)


def _solved(estimator: Any) -> Any:
    """What the closed form solves."""
    if isinstance(estimator, Automatic):
        return GradientDICE(estimator.discount)
    return same_flow(estimator.discount) if isinstance(estimator, LSTDQ) else require_linear(estimator)


def _misfit(asked: Asked, features: BatchFeatures, scorer: LinearScorer) -> float:
    """The Bellman misfit of the fit, on the sample."""
    sample = asked.log.sample
    scores = scorer.rows(sample)
    design = Problem(sample, asked.policy, features.functions, asked.seed).rows
    return bellman_misfit(design, Influence(scores.shares, None, scores.ratio, scores.residual), asked.seed)


def _movements(found: Sums, names: tuple[str, ...] | None) -> tuple[Movement, ...]:
    """The mean of every coordinate of the states, in the log and under the target."""
    if "moved" not in found:
        return ()
    logged, target = (row[1:] / (row[0] or 1.0) for row in found["moved"])
    return mean_movements("state", names, np.stack([logged, target]))
