"""Cross-fitting: the log in folds, a fit on all but one, scores on the one left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError
from gradientdice.functions.rows import Rows
from gradientdice.functions.stream import LogDesign
from gradientdice.moments import Moments
from gradientdice.solvers.closed_form import ClosedForm, LinearEstimator, LinearFit


@dataclass(frozen=True, eq=False)
class Folds:
    """Which fold each transition and each initial state is in; rows of one episode are in one fold."""

    rows: Int[np.ndarray, " n"]
    initial: Int[np.ndarray, " n0"]
    count: int

    @classmethod
    def create(cls, data: Transitions, count: int, seed: int) -> Folds:
        """Folds of about equal size, drawn at random."""
        rng = np.random.default_rng(seed)
        starts = 0 if data.start_states is None else len(data.start_states)
        units = len(data) if data.episodes is None else len(np.unique(data.episodes))
        if units < count:
            raise InputError(
                f"Cross-fitting needs at least {count} independent units and the log has {units} "
                f"{'rows' if data.episodes is None else 'episodes'}: give more, or functions= for a plain fit."
            )
        if data.episodes is None:
            return cls(_balanced(len(data), count, rng), _balanced(starts, count, rng), count)
        numbers, episode = np.unique(data.episodes, return_inverse=True)
        fold = _balanced(len(numbers), count, rng)
        initial = fold if data.initial_states is None else _balanced(starts, count, rng)
        return cls(fold[episode], initial, count)


def _balanced(size: int, count: int, rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(size) % count


def fold_moments(log: LogDesign, folds: Folds) -> list[Moments]:
    """For each fold, the moments of all the other folds: one pass over the log, since moments add up."""
    parts: list[Moments | None] = [None] * folds.count
    design = None
    for rows, design in log.chunks():
        for fold in range(folds.count):
            chosen = np.flatnonzero(folds.rows[rows] == fold)
            part = Moments.from_rows(
                design.current.take(chosen),
                design.following.take(chosen),
                design.rewards[chosen],
                design.weights[chosen],
                design.width,
            )
            known = parts[fold]
            parts[fold] = part if known is None else known + part
    assert design is not None
    totals = []
    for fold in range(folds.count):
        others = [part for number, part in enumerate(parts) if number != fold and part is not None]
        total = others[0]
        for part in others[1:]:
            total = total + part
        initial = None if log.initial is None else _without(log.initial, folds.initial == fold)
        totals.append(total.completed(log, design, initial))
    return totals


def fold_fits(
    moments: Sequence[Moments], estimators: Sequence[LinearEstimator], solver: ClosedForm
) -> list[list[LinearFit]]:
    """For each estimator, a fit to each of these moments."""
    fits = [solver.fit_each(estimators, of_one) for of_one in moments]
    return [list(of_one) for of_one in zip(*fits, strict=True)]


def _without(rows: Rows, left_out: np.ndarray) -> Rows:
    kept = np.flatnonzero(~left_out)
    return rows.take(kept if len(kept) else np.arange(len(left_out)))


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What the fits say about the rows they did not see.

    The matching Q is x·p plus the constant λvᵀq / (1−γ), since p solves Aᵀp = c − λv(vᵀq). At discount 1 the number
    λvᵀq is the value, and Q the differential one.

    Attributes:
        ratio: (n,) τ.
        residual: (n,) r + γV' − Q, less the fit's value at discount 1.
        norm: (n,) λvᵀq of the row's fit.
        initial_value: (n0,) V at the initial states; None if the log has none or they play no part.
        ended: (n,) rows after which an episode restarts from an initial state; None if there are none.
    """

    ratio: Float[np.ndarray, " n"]
    residual: Float[np.ndarray, " n"]
    norm: Float[np.ndarray, " n"]
    initial_value: Float[np.ndarray, " n0"] | None
    ended: Bool[np.ndarray, " n"] | None = None


def held_out(log: LogDesign, folds: Folds, fits: Sequence[Sequence[LinearFit]]) -> list[HeldOut]:
    """Every row scored by the fit that did not see it, for each estimator's fits, in one pass over the log."""
    n, absorbing = len(log.data), log.first.absorbing
    ratio, residual = np.empty((len(fits), n)), np.empty((len(fits), n))
    # One column a fit: predictions of all in one product, of which each row keeps its own fold's.
    width = log.first.width
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
