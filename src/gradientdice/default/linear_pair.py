"""The answer of a search as functions of any row: a ratio and a Q that are linear in the search's features.

A log beyond memory is searched on a sample, and every other row is scored by what was learned there. The ratio is the
chosen ridge's, the mean over the folds. Q is the chosen combination: the kernel's Qs are linear already; those of
networks, simulated from every row of the sample or fitted to it, are fitted to the features by least squares. What
that fit loses makes Q a worse control variate, and not the answer wrong where the ratio is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_factor, cho_solve

from gradientdice.default.ridge_scores import RidgeScores
from gradientdice.default.trial import Candidate
from gradientdice.functions.rows import Rows, add_product
from gradientdice.problem.design import Design
from gradientdice.problem.moments import weighted_sum
from gradientdice.problem.stream import LogDesign
from gradientdice.statistics.influence import HeldOutQ

# A network's Q is fitted to so many rows for each feature: more change the fit by less than the features leave out.
ROWS_PER_FEATURE = 20
# Of the mean square of the features: enough that nearly collinear ones do not matter.
SMOOTHING_RIDGE = 1e-6


@dataclass(frozen=True, eq=False)
class LinearPair:
    """τ(s,a) = x·w and Q(s,a) = x·p + level.

    Attributes:
        discount: γ.
        rows: the sample's feature rows, whose functions and absorbing state they are linear in.
        ratio_params: w.
        value_params: p.
        level: a constant of Q and V.
    """

    discount: float
    rows: LogDesign
    ratio_params: Float[np.ndarray, " K"]
    value_params: Float[np.ndarray, " K"]
    level: float


def linear_pair(rows: LogDesign, path: RidgeScores, models: Sequence[HeldOutQ], candidate: Candidate) -> LinearPair:
    """The pair of a candidate.

    Args:
        rows: the sample's feature rows.
        path: the fits of the kernel's ratios and Qs.
        models: the Qs of networks.
        candidate: the candidate, with its weights over the kernel's Qs, the networks' and 0, in this order.
    """
    count, weights = len(path.ridges), candidate.weights
    params, level = weights[:count] @ path.value_params, 0.0
    if path.discount < 1:
        level = float(weights[:count] @ path.norms) / (1 - path.discount)
    shares = weights[count : count + len(models)]
    if shares.any():
        params = params + _smoothed(rows, models, shares)
    return LinearPair(path.discount, rows, path.ratio_params[path.ridges.index(candidate.ridge)], params, level)


def _smoothed(
    rows: LogDesign, models: Sequence[HeldOutQ], shares: Float[np.ndarray, " models"]
) -> Float[np.ndarray, " K"]:
    """The least-squares fit of Σ_j share_j Q_j at the logged pairs, and of its V at next and at initial states.

    Initial states have the weight of all rows that are used: V there is a mean of its own in the answer.
    """
    q = np.sum([share * model.q for share, model in zip(shares, models, strict=True)], axis=0)
    following = np.sum([share * model.next_value for share, model in zip(shares, models, strict=True)], axis=0)
    gram, target, taken, used = np.zeros((rows.width, rows.width)), np.zeros(rows.width), 0.0, 0
    for where, design in rows.chunks():
        weights = design.weights
        _add(gram, target, design.current, weights, q[where])
        # What follows an end is no state.
        _add(gram, target, design.following, np.where(design.ended, 0.0, weights), following[where])
        taken, used = taken + float(weights.sum()), used + len(weights)
        if used >= ROWS_PER_FEATURE * rows.width:
            break
    known = [model.initial_value for model in models if model.initial_value is not None]
    if rows.initial is not None and len(known) == len(models):
        weights = rows.initial_weights * (taken / rows.initial_weights.sum())
        _add(
            gram,
            target,
            rows.initial,
            weights,
            np.sum([share * v for share, v in zip(shares, known, strict=True)], axis=0),
        )
    gram[np.diag_indices_from(gram)] += SMOOTHING_RIDGE * np.trace(gram) / len(gram) + np.finfo(float).tiny
    params = cho_solve(cho_factor(gram), target)
    if rows.absorbing:
        params[-1] = 0.0
    return params


def _add(gram: np.ndarray, target: np.ndarray, rows: Rows, weights: np.ndarray, values: np.ndarray) -> None:
    add_product(gram, rows, rows, weights)
    target += weighted_sum(rows, weights * values, len(target))


def predictions(
    ratio_params: Float[np.ndarray, " K"], value_params: Float[np.ndarray, " K"], design: Design
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """τ and Q at some rows, and V at what follows them, without the level."""
    both = np.asarray(design.current.predict(np.column_stack([ratio_params, value_params])))
    return both[:, 0], both[:, 1], np.asarray(design.following.predict(value_params[:, None]))[:, 0]
