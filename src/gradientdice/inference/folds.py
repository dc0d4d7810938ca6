"""Cross-fitting: the log in folds, a fit on all but one, scores on the one left out."""

from __future__ import annotations

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


def fold_fits(log: LogDesign, folds: Folds, estimator: LinearEstimator, solver: ClosedForm) -> list[LinearFit]:
    """For each fold, the fit on all the other folds: one pass over the log, since moments add up."""
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
    fits = []
    for fold in range(folds.count):
        others = [part for number, part in enumerate(parts) if number != fold and part is not None]
        total = others[0]
        for part in others[1:]:
            total = total + part
        initial = None if log.initial is None else _without(log.initial, folds.initial == fold)
        fits.append(solver.fit(estimator, total.completed(log, design, initial)))
    return fits


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


def held_out(log: LogDesign, folds: Folds, fits: list[LinearFit]) -> HeldOut:
    """Every row scored by the fit that did not see it."""
    gamma, n = fits[0].discount, len(log.data)
    restart = log.first.absorbing and gamma == 1
    ratio, residual = np.empty(n), np.empty(n)
    # One column a fold: predictions of all fits in one product, of which each row keeps its own.
    ratios, values = (
        np.column_stack(columns)
        for columns in ([f.solution.ratio_params for f in fits], [f.adjoint.critic for f in fits])
    )
    if restart:
        ratios, values = (np.vstack([array, np.zeros(folds.count)]) for array in (ratios, values))
    for rows, design in log.chunks():
        own = folds.rows[rows][:, None]
        tau = np.take_along_axis(design.current.predict(ratios), own, axis=1)[:, 0]
        q = np.take_along_axis(design.current.predict(values), own, axis=1)[:, 0]
        following = np.take_along_axis(np.asarray(design.following.predict(values)), own, axis=1)[:, 0]
        if restart:
            again = np.array([f.moments.initial @ f.adjoint.critic for f in fits])
            following = np.where(design.ended, again[own[:, 0]], following)
        ratio[rows], residual[rows] = tau, design.rewards + gamma * following - q
    norms = np.array([fit.adjoint.norm for fit in fits])
    initial = None
    if log.initial is not None and (gamma < 1 or restart):
        constant = norms / (1 - gamma) if gamma < 1 else 0.0
        values_there = np.asarray(log.initial.predict(values)) + constant
        initial = np.take_along_axis(values_there, folds.initial[:, None], axis=1)[:, 0]
    norm = norms[folds.rows]
    return HeldOut(ratio, residual - norm, norm, initial, log.data.terminated if restart else None)
