"""Cross-fitting: a closed-form fit on all folds but one, for each fold, and what it says about the fold left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.dice.closed_form import ClosedForm
from gradientdice.dice.saddle import LinearEstimator
from gradientdice.dice.solution import LinearFit
from gradientdice.problem.folds import Folds
from gradientdice.problem.problem import Problem
from gradientdice.problem.stream import LogDesign
from gradientdice.statistics.influence import HeldOut

FOLDS = 4


@dataclass(frozen=True, eq=False)
class CrossFit:
    """The fits of one estimator, each without one fold.

    Attributes:
        rows: the log's feature rows.
        folds: the fold of each row and of each initial state.
        fits: one for each fold left out.
        scores: what they say about the fold left out.
    """

    rows: LogDesign
    folds: Folds
    fits: list[LinearFit]
    scores: HeldOut

    @property
    def worst(self) -> LinearFit:
        """The worst conditioned of the fits."""
        return max(self.fits, key=lambda fit: fit.solution.stats["condition_number"])

    @property
    def mean_ratio(self) -> float:
        """The mean over the fits of E[τ], the absorbing state included."""
        return float(np.mean([fit.mean_ratio for fit in self.fits]))


def cross_fit(problem: Problem, estimators: Sequence[LinearEstimator], count: int = FOLDS) -> list[CrossFit]:
    """The cross-fits of some estimators; they share the pass over the log.

    Raises:
        InputError: if the log is too small to be split, or without a fold lacks what the policy does.
    """
    folds = problem.folds(count)
    try:
        rows, moments = problem.fold_rows(count), problem.fold_moments(count)
    except InputError as error:
        raise InputError(f"With a part of the log left out, as cross-fitting needs: {error}") from error
    by_fold = [ClosedForm().fit_each(estimators, of_one) for of_one in moments]
    fits = [list(of_one) for of_one in zip(*by_fold, strict=True)]
    scores = held_out(rows, folds, fits)
    return [CrossFit(rows, folds, own, found) for own, found in zip(fits, scores, strict=True)]


def held_out(log: LogDesign, folds: Folds, fits: Sequence[Sequence[LinearFit]]) -> list[HeldOut]:
    """Every row scored by the fit that did not see it, for each estimator's fits, in one pass over the log."""
    n, width, absorbing = len(log.data), log.width, log.absorbing
    ratio, residual = np.empty((len(fits), n)), np.empty((len(fits), n))
    # One column per fit: predictions of all in one product, of which each row keeps its own fold's.
    every = [fit for of_one in fits for fit in of_one]
    ratios = np.column_stack([_padded(fit.solution.ratio_params, width) for fit in every])
    values = np.column_stack([_padded(fit.adjoint.critic, width) for fit in every])
    for rows, design in log.chunks():
        own = folds.rows[rows]
        tau, q, following = (
            _own_fold(part, own, len(fits))
            for part in (
                design.current.predict(ratios),
                design.current.predict(values),
                design.following.predict(values),
            )
        )
        for number, of_one in enumerate(fits):
            after, gamma = following[number], of_one[0].discount
            if absorbing and gamma == 1:
                again = np.array([fit.moments.initial @ fit.adjoint.critic for fit in of_one])
                after = np.where(design.ended, again[own], after)
            ratio[number, rows], residual[number, rows] = tau[number], design.rewards + gamma * after - q[number]
    initial = None if log.initial is None else _own_fold(log.initial.predict(values), folds.initial, len(fits))
    scores = []
    for number, of_one in enumerate(fits):
        gamma, norms = of_one[0].discount, np.array([fit.adjoint.norm for fit in of_one])
        restart = absorbing and gamma == 1
        norm, there = norms[folds.rows], None
        if initial is not None and (gamma < 1 or restart):
            there = initial[number] + (norms[folds.initial] / (1 - gamma) if gamma < 1 else 0.0)
        ended = log.data.terminated if restart else None
        scores.append(HeldOut(ratio[number], residual[number] - norm, norm, there, ended))
    return scores


def _padded(params: np.ndarray, width: int) -> np.ndarray:
    """With a zero for the absorbing state where a fit has none, as at discount 1."""
    return np.append(params, np.zeros(width - len(params)))


def _own_fold(predictions: np.ndarray, fold: np.ndarray, estimators: int) -> np.ndarray:
    """(rows, estimators · folds) -> (estimators, rows): the prediction of each row's own fold."""
    shaped = np.asarray(predictions).reshape(len(fold), estimators, -1)
    return np.take_along_axis(shaped, fold[:, None, None], axis=2)[:, :, 0].T
