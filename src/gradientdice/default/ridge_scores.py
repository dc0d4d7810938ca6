"""Ratios and Qs of a path of ridges at rows that their fits did not see, for several discounts in two passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from gradientdice.dice.ridge_path import RidgeFit, ridge_path
from gradientdice.functions.kernel import FittedKernel
from gradientdice.problem.design import Design
from gradientdice.problem.folds import Folds, moments_without
from gradientdice.problem.stream import LogDesign


@dataclass(frozen=True, eq=False)
class RidgeScores:
    """What the path of one discount says about each row, by the fit without the row's fold.

    Attributes:
        discount: γ.
        ridges: ξ of each fit.
        ratio: τ.
        residual: r + γV' − Q, at discount 1 less the fit's value.
        norm: the fit's value at discount 1, by row.
        initial_value: V at the initial states; None if the log has none.
        absorbing_ratio: τ in the absorbing state, the mean over folds; 0 where there is none.
        condition_number: the largest over folds.
        num_features: of the fits.
        ratio_params: the parameters of τ, the mean over folds.
        value_params: those of Q.
        norms: λvᵀq, the mean over folds.
    """

    discount: float
    ridges: tuple[float, ...]
    ratio: Float[np.ndarray, "R n"]
    residual: Float[np.ndarray, "R n"]
    norm: Float[np.ndarray, "R n"]
    initial_value: Float[np.ndarray, "R n0"] | None
    absorbing_ratio: Float[np.ndarray, " R"]
    condition_number: Float[np.ndarray, " R"]
    num_features: int
    ratio_params: Float[np.ndarray, "R K"]
    value_params: Float[np.ndarray, "R K"]
    norms: Float[np.ndarray, " R"]


def ridge_scores(
    log: LogDesign, folds: Folds, discounts: Sequence[float], ridges: Sequence[float]
) -> list[RidgeScores]:
    """Fits without each fold, for all discounts and ridges, and what they say about the fold."""
    paths: list[list[_Path]] = [[] for _ in discounts]
    free = _unpenalised(log)
    for moments in moments_without(log, folds):
        for path, discount in zip(paths, discounts, strict=True):
            fits = ridge_path(moments, discount, ridges, free)
            path.append(_Path(fits, moments.initial))
    scores = [_Scores(discount, path, log, folds) for discount, path in zip(discounts, paths, strict=True)]
    for rows, design in log.chunks():
        for fold in range(folds.count):
            chosen = np.flatnonzero(folds.rows[rows] == fold)
            if len(chosen):
                for score in scores:
                    score.fill(fold, rows.start + chosen, design, chosen)
    return [score.found() for score in scores]


def _unpenalised(log: LogDesign) -> Int[np.ndarray, " c"]:
    """The constant of each action's block, and the absorbing state's indicator."""
    functions, width, absorbing = log.functions, log.width, log.absorbing
    assert isinstance(functions, FittedKernel)
    actions = functions.num_actions or 1
    size = (width - absorbing) // actions
    free = np.arange(actions) * size
    return np.append(free, width - 1) if absorbing else free


@dataclass(frozen=True, eq=False)
class _Path:
    """The fits without one fold, and the mean initial row behind them."""

    fits: list[RidgeFit]
    initial: Float[np.ndarray, " K"] | None


class _Scores:
    """The scores of one discount while they are filled in."""

    def __init__(self, discount: float, paths: list[_Path], log: LogDesign, folds: Folds) -> None:
        # A ridge counts only if every fold has a solution for it.
        kept = set.intersection(*({fit.ridge for fit in path.fits} for path in paths))
        self._fits = [[fit for fit in path.fits if fit.ridge in kept] for path in paths]
        self._discount, n = discount, len(log.data)
        self._width, self._absorbing = log.width, log.absorbing
        self._restart = discount == 1 and self._absorbing
        self._ratios = [self._stacked(fits, "ratio") for fits in self._fits]
        self._values = [self._stacked(fits, "value") for fits in self._fits]
        self._norms = [np.array([fit.norm for fit in fits]) for fits in self._fits]
        self._again = [
            self._padded(path.initial) @ values if self._restart and path.initial is not None else None
            for path, values in zip(paths, self._values, strict=True)
        ]
        self._ratio, self._residual, self._norm = (np.empty((len(kept), n)) for _ in range(3))
        self._initial = self._at_starts(log, folds)

    def fill(self, fold: int, rows: Int[np.ndarray, " m"], design: Design, chosen: Int[np.ndarray, " m"]) -> None:
        """The rows of one fold in a chunk."""
        current, following = design.current.take(chosen), design.following.take(chosen)
        values, norms = self._values[fold], self._norms[fold]
        both = np.asarray(current.predict(np.hstack([self._ratios[fold], values])))
        after, count = np.asarray(following.predict(values)), values.shape[1]
        again = self._again[fold]
        if again is not None:
            after = np.where(design.ended[chosen, None], again, after)
        residual = design.rewards[chosen, None] + self._discount * after - both[:, count:] - norms
        self._ratio[:, rows], self._residual[:, rows] = both[:, :count].T, residual.T
        self._norm[:, rows] = norms[:, None]

    def found(self) -> RidgeScores:
        """The scores, once all rows are filled in."""
        absorbing = np.zeros(len(self._ratio))
        if self._absorbing and self._discount < 1:
            # The absorbing state's own feature is the last; the ratio there is its coefficient.
            absorbing = np.mean([ratios[-1] for ratios in self._ratios], axis=0)
        conditions = np.array([[fit.condition_number for fit in fits] for fits in self._fits])
        return RidgeScores(
            self._discount,
            tuple(fit.ridge for fit in self._fits[0]),
            self._ratio,
            self._residual,
            self._norm,
            self._initial,
            absorbing,
            conditions.max(axis=0),
            len(self._fits[0][0].ratio),
            np.mean(self._ratios, axis=0).T,
            np.mean(self._values, axis=0).T,
            np.mean(self._norms, axis=0),
        )

    def _at_starts(self, log: LogDesign, folds: Folds) -> np.ndarray | None:
        if log.initial is None or (self._discount == 1 and not self._restart):
            return None
        result = np.empty((len(self._ratio), len(folds.initial)))
        for fold, (values, norms) in enumerate(zip(self._values, self._norms, strict=True)):
            chosen = np.flatnonzero(folds.initial == fold)
            level = norms / (1 - self._discount) if self._discount < 1 else 0.0
            result[:, chosen] = (np.asarray(log.initial.take(chosen).predict(values)) + level).T
        return result

    def _stacked(self, fits: list[RidgeFit], name: str) -> np.ndarray:
        return np.column_stack([self._padded(getattr(fit, name)) for fit in fits])

    def _padded(self, params: np.ndarray) -> np.ndarray:
        """With a zero for the absorbing state where a fit has none, as at discount 1."""
        return np.append(params, np.zeros(self._width - len(params)))
