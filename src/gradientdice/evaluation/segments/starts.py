"""The value of the target when it starts in a group of initial states.

    ρ_g = (1−γ) E_μ0[V | group] + E[τ_g (r + γV' − Q)],

with τ_g the ratio of the target that starts in the group. The ratio is affine in the initial distribution, so that the
groups' ratios, weighted by their shares, add up to the whole's, and so do the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import InputError
from gradientdice.default.automatic import Automatic
from gradientdice.default.ridge_scores import ridge_scores
from gradientdice.default.search import FunctionSearch
from gradientdice.dice.closed_form import ClosedForm
from gradientdice.estimators.answer import Answer, Estimator
from gradientdice.estimators.doubly_robust.cross_fit import FOLDS
from gradientdice.estimators.saddle.estimator import linear_form, objective_of
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.evaluation.segments.rows import Group, Part, searched_log, weighted_mean
from gradientdice.log.transitions import Transitions
from gradientdice.problem.moments import mean_start
from gradientdice.problem.problem import Problem
from gradientdice.statistics.influence import Influence, centred_shares, influence


def start_parts(problem: Problem, estimator: Estimator, answer: Answer, groups: Sequence[Group]) -> list[Part]:
    """The value of each group of initial states.

    Raises:
        InputError: at discount 1, or if the estimator has no Q that could be started from a group.
    """
    if estimator.discount == 1:
        raise InputError(
            'At discount 1 the value is the average reward, which does not depend on the start: give of="rows", or a '
            "discount below 1."
        )
    if isinstance(estimator, Automatic) and problem.is_searched:
        return [_searched(problem, estimator.discount, answer, group) for group in groups]
    objective = objective_of(GradientDICE(estimator.discount) if isinstance(estimator, Automatic) else estimator)
    if objective is None:
        raise InputError(
            f"{type(estimator).__name__} has no Q and ratio that could be started from a group of initial states: use "
            f'GradientDICE({estimator.discount:g}) or the default, or give of="rows".'
        )
    solved = linear_form(objective, problem)
    if problem.support is not None and getattr(solved, "solves_flow", False):
        return [_table(problem, estimator.discount, group) for group in groups]
    fit = ClosedForm()
    parts = []
    for group in groups:
        moments = replace(problem.moments, initial=mean_start(problem.rows, group.members))
        found = fit.fit_moments(solved, moments)
        shares = influence(found, problem.rows)
        assert shares.initial is not None
        values = uncentred(shares.initial, problem.data)
        parts.append(Part(found.value, replace(shares, initial=_of_group(values, problem.data, group))))
    return parts


def _table(problem: Problem, discount: float, group: Group) -> Part:
    """On the empirical MDP, where the mean of τ_g (r + γV' − Q) is 0."""
    data, solved = problem.data, problem.tabular_solution(discount)
    assert data.start_weights is not None and solved.initial_values is not None
    weights = np.where(group.members, data.start_weights, 0.0)
    ratio = problem.empirical(discount).ratio_from(weights)
    values = (1 - discount) * solved.initial_values
    rows = centred_shares(ratio * solved.residual, data.row_weights)
    initial = _of_group(values, data, group)
    return Part(weighted_mean(values, weights), Influence(rows, initial, ratio, solved.residual))


def _searched(problem: Problem, discount: float, answer: Answer, group: Group) -> Part:
    """With the default's own Q, and the ratio of its ridge from the group's starts.

    Fits that did not see a fold know the group's share in the other folds: with that share the groups' ratios add up to
    the whole's exactly.
    """
    search, shares, data = problem.chosen, answer.influence, problem.data
    assert isinstance(search, FunctionSearch) and shares is not None and shares.initial is not None
    assert data.start_weights is not None
    folds, chosen = problem.folds(FOLDS), search.chosen
    weights = np.where(group.members, data.start_weights, 0.0)
    log = searched_log(problem, data)
    log.initial_weights = weights
    ratio = ridge_scores(log, folds, [discount], [chosen.ridge])[0].ratio[0]
    others = [weighted_mean(group.members * 1.0, data.start_weights * (folds.initial != fold)) for fold in range(FOLDS)]
    share = weighted_mean(group.members * 1.0, data.start_weights)
    own = problem.row_share(discount) * np.array(others)[folds.rows] / share * ratio
    score = own * shares.residual
    correction = weighted_mean(shares.ratio * shares.residual, data.row_weights)
    values = uncentred(shares.initial, data) + answer.value - correction
    return Part(
        weighted_mean(values, weights) + weighted_mean(score, data.row_weights),
        Influence(centred_shares(score, data.row_weights), _of_group(values, data, group), own, shares.residual),
    )


def uncentred(shares: Float[np.ndarray, " n0"], data: Transitions) -> Float[np.ndarray, " n0"]:
    """(1−γ)V at each initial state, less its mean, from the shares in the error."""
    weights = data.start_weights
    assert weights is not None
    return np.divide(shares * weights.sum(), weights, out=np.zeros_like(shares), where=weights > 0)


def _of_group(values: Float[np.ndarray, " n0"], data: Transitions, group: Group) -> Float[np.ndarray, " m"]:
    """The group's starts' shares in the error of its mean.

    Starts that are given are units of their own, and only the group's are used; those that are the episodes' own stay
    with their episodes.
    """
    weights = data.start_weights
    assert weights is not None
    own = centred_shares(values[group.members], weights[group.members])
    if data.initial_states is not None:
        return own
    shares = np.zeros(len(values))
    shares[group.members] = own
    return shares
