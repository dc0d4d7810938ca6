"""The saddle system of the regularised Lagrangian: an eigendecomposition, and Newton steps where ζ ≥ 0 binds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg

from gradientdice.dice.closed_form import whitening
from gradientdice.dice.hinge import HingeProblem, minimise
from gradientdice.dice.solution import Status
from gradientdice.estimators.minimax.mql import CONSTANT_OUTSIDE, without_constant
from gradientdice.estimators.minimax.pairing import Pairing

if TYPE_CHECKING:
    from gradientdice.estimators.minimax.lagrangian import RegularizedLagrangian

# Where ζ ≥ 0 is not regularised the programme is solved by proximal steps of this size, until they stop moving.
PROXIMAL, PROXIMAL_STEPS, STILL = 1e-4, 500, 1e-10


@dataclass(frozen=True, eq=False)
class SaddleSystem:
    """The saddle system, solved: its parameters, and what solves it for other right-hand sides.

    Attributes:
        ratio: w, (K,).
        critic: κ, (K,).
        multiplier: λ.
        inverse: (m, m), of the system in the two bases.
        bases: of w and of κ, (K, r) each.
        with_norm: whether λ is part of it.
        status: whether ζ is unique and how many digits hold.
        stats: condition_number, rank, num_features.
    """

    ratio: np.ndarray
    critic: np.ndarray
    multiplier: float
    inverse: np.ndarray
    bases: tuple[np.ndarray, np.ndarray]
    with_norm: bool
    status: Status
    stats: dict[str, float]

    @classmethod
    def create(cls, estimator: RegularizedLagrangian, pairing: Pairing, ratio_basis: np.ndarray) -> SaddleSystem:
        """The system with ζ in the span of a white basis."""
        critic_basis, with_norm = _critic_basis(estimator, pairing)
        r, k = ratio_basis.shape[1], critic_basis.shape[1]
        matrix = np.zeros((r + k + with_norm, r + k + with_norm))
        matrix[:r, :r] = np.diag(_penalty(estimator.ratio_regularizer, r, pairing.absorbing))
        matrix[r : r + k, r : r + k] = np.diag(-_penalty(estimator.critic_regularizer, k, pairing.absorbing))
        matrix[r : r + k, :r] = critic_basis.T @ pairing.flow @ ratio_basis
        right = np.concatenate(
            [estimator.reward_weight * (ratio_basis.T @ pairing.reward), critic_basis.T @ pairing.start]
        )
        if with_norm:
            matrix[-1, :r] = ratio_basis.T @ pairing.mean
            right = np.append(right, 1.0)
        values, vectors = np.linalg.eigh(matrix, UPLO="L")
        sizes = np.abs(values)
        usable = sizes > sizes.max() * len(sizes) * np.finfo(np.float64).eps
        inverse = (vectors[:, usable] / values[usable]) @ vectors[:, usable].T
        solved = inverse @ right
        # A direction that the system leaves open does no harm if it is the critic's alone and nothing pulls along it.
        free = vectors[:, ~usable]
        size = float(np.linalg.norm(right)) or 1.0
        harmful = np.abs(free[:r]).max(initial=0) > 1e-6 or np.linalg.norm(free.T @ right) > 1e-6 * size
        condition = float(sizes.max() / sizes[usable].min())
        status = Status.SINGULAR if harmful else Status.ILL_CONDITIONED if condition > 1e12 else Status.OK
        stats = {"condition_number": condition, "rank": r, "num_features": len(pairing.mean)}
        multiplier = float(solved[-1]) if with_norm else 0.0
        ratio, critic = ratio_basis @ solved[:r], critic_basis @ solved[r : r + k]
        return cls(ratio, critic, multiplier, inverse, (ratio_basis, critic_basis), with_norm, status, stats)

    def adjoint(self, ratio: np.ndarray, critic: np.ndarray, multiplier: float) -> tuple[np.ndarray, np.ndarray, float]:
        """The system's solution for a gradient with respect to w, κ and λ: it is symmetric."""
        first, second = self.bases
        right = np.concatenate([first.T @ ratio, second.T @ critic, [multiplier] if self.with_norm else []])
        solved = self.inverse @ right
        r, k = first.shape[1], second.shape[1]
        return first @ solved[:r], second @ solved[r : r + k], float(solved[-1]) if self.with_norm else 0.0


def white_basis(gram: np.ndarray, pairing: Pairing) -> np.ndarray:
    """A white basis, in which the absorbing state, if there is one, is the last direction."""
    tolerance = pairing.ratio.functions.rank_tolerance
    if not pairing.absorbing:
        return whitening(gram, tolerance)
    return np.asarray(scipy.linalg.block_diag(whitening(gram[:-1, :-1], tolerance), 1 / np.sqrt(gram[-1, -1])))


def _penalty(regularizer: float, size: int, absorbing: bool) -> np.ndarray:
    """The regulariser along each direction of a basis: none for the absorbing state, the last."""
    penalty = np.full(size, float(regularizer))
    if absorbing:
        penalty[-1] = 0.0
    return penalty


def _critic_basis(estimator: RegularizedLagrangian, pairing: Pairing) -> tuple[np.ndarray, bool]:
    """A white basis for ν, and whether λ is kept beside it.

    Without α_ν a constant in ν and λ are one and the same: ν + t changes nothing if λ falls by (1−γ)t. Below discount
    1 λ is then left out, and at 1, where the constant alone makes no difference, ν has mean 0.
    """
    basis = white_basis(pairing.critic_gram, pairing)
    if estimator.critic_regularizer > 0:
        return basis, estimator.norm
    if estimator.discount == 1:
        return without_constant(basis, pairing.critic_mean), estimator.norm
    constant = basis.T @ pairing.critic_mean
    return basis, estimator.norm and bool(1 - constant @ constant > CONSTANT_OUTSIDE)


def active_basis(estimator: RegularizedLagrangian, pairing: Pairing) -> np.ndarray:
    """The table's pairs with ζ > 0, scaled to be white.

    With ζ maximised out, ν and λ minimise
    (1−γ)bᵀκ + λ + ½α_ν κᵀCκ + ½ Σ_j m_j (α_R r̄_j − δ̄_jᵀκ − λ)₊² / α_ζ, and ζ_j = (α_R r̄_j − δ̄_jᵀκ − λ)₊ / α_ζ.
    """
    critic_basis, with_norm = _critic_basis(estimator, pairing)
    mass = pairing.mean
    logged = np.flatnonzero(mass > 0)
    m = mass[logged]
    features = (pairing.flow[:, logged].T / m[:, None]) @ critic_basis
    linear = critic_basis.T @ pairing.start
    quadratic = _penalty(estimator.critic_regularizer, critic_basis.shape[1], pairing.absorbing)
    if with_norm:
        features = np.column_stack([features, np.ones(len(m))])
        linear, quadratic = np.append(linear, 1.0), np.append(quadratic, 0.0)
    rewards = estimator.reward_weight * pairing.reward[logged] / m
    scale = _penalty(estimator.ratio_regularizer, len(m), pairing.absorbing)
    near = np.where(scale == 0, PROXIMAL, 0.0)
    scale = scale + near
    zeta, point = np.ones(len(m)), np.zeros(len(linear))
    for _ in range(PROXIMAL_STEPS if near.any() else 1):
        problem = HingeProblem(np.diag(quadratic), linear, features, rewards + near * zeta, m / scale)
        found = minimise(problem, point)
        before, zeta, point = zeta, found.multipliers / m, found.point
        if np.abs(zeta - before).max() <= STILL * np.abs(zeta).max():
            break
    active = logged[zeta > 1e-9 * np.abs(zeta).max()]
    basis = np.zeros((len(mass), len(active)))
    basis[active, np.arange(len(active))] = 1 / np.sqrt(mass[active])
    return basis


def marked_if_not_optimal(estimator: RegularizedLagrangian, pairing: Pairing, system: SaddleSystem) -> SaddleSystem:
    """The system, marked if ζ is negative somewhere or would gain where it is 0."""
    gain = estimator.reward_weight * pairing.reward - pairing.flow.T @ system.critic - system.multiplier * pairing.mean
    size = float(np.abs(pairing.mean * system.ratio).max())
    outside = system.ratio == 0
    wrong = float(np.maximum(gain[outside], 0).max(initial=0)) + float(
        np.maximum(-pairing.mean * system.ratio, 0).max()
    )
    return system if wrong <= 1e-7 * size else replace(system, status=Status.NOT_CONVERGED)
