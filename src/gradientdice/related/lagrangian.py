"""The regularised Lagrangian of the value's linear programme: max over ζ, min over ν and λ, of

    (1−γ) E_μ0[ν] + λ + E[ζ (α_R r + γν' − ν − λ)] + ½α_ν E[ν²] − ½α_ζ E[ζ²].

ζ is the ratio, ν the critic, λ the multiplier of E[ζ] = 1 (left out if norm=False). With linear ζ = x·w and ν = x·κ it
is one symmetric system, here in a basis in which C = I:

    α_ζ w + Aᵀκ + λv = α_R c,     Aw − α_ν κ = (1−γ)b,     vᵀw = 1.

There are three ways to read a value off it: E[ζr] (the ratio's), (1−γ) E_μ0[ν] + λ (the critic's, for α_R = 1), and the
Lagrangian without its regularisers, (1−γ) E_μ0[ν] + λ + E[ζ (r + γν' − ν − λ)]. With functions rich enough:

    ==================  =================================  ==================================  ==================
    regularisers        ratio's                            critic's                            Lagrangian's
    ==================  =================================  ==================================  ==================
    α_ν = 0             right: Aw = (1−γ)b alone           off by −α_ζ E[ζ²]                   right
    α_ζ = 0, α_R = 1    off by α_ν E[ν²]                   right: ν = Q − λ/(1−γ)              right
    α_ζ = 0, α_R = 0    right: ν = 0                       does not apply                      right
    both, α_R = 0 or 1  off                                off                                 off
    ==================  =================================  ==================================  ==================

The Lagrangian's is doubly robust: right if ζ is or if ν is. ζ ≥ 0 costs nothing where ζ is right already. Where it
binds, α_ν > 0 with α_R = 1, it takes the critic's and the Lagrangian's rightness away. The absorbing state is not
regularised: it is not part of the log, and the value would hang on the weight of its row.

The paper calls ν the primal and ζ the dual; the names here are those of the rest of this library.

References:
    Yang, Nachum, Dai, Li and Schuurmans, Off-Policy Evaluation via the Regularized Lagrangian, NeurIPS 2020.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import scipy.linalg

from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError, require_number
from gradientdice.functions.design import Functions
from gradientdice.functions.mlp import MLP
from gradientdice.functions.tabular import Tabular
from gradientdice.inference.direct import DirectAnswer
from gradientdice.inference.influence import Influence
from gradientdice.inference.linear import describe
from gradientdice.policies import Policy
from gradientdice.related.mql import CONSTANT_OUTSIDE, without_constant
from gradientdice.related.needs import linear_functions, misfit_notes
from gradientdice.related.pairing import Pairing
from gradientdice.solvers.closed_form import ClosedForm, whitening
from gradientdice.solvers.hinge import HingeProblem, minimise
from gradientdice.solvers.solution import Solution
from gradientdice.solvers.status import Status

# Where ζ ≥ 0 is not regularised the programme is solved by proximal steps of this size, until they stand still.
PROXIMAL, PROXIMAL_STEPS, STILL = 1e-4, 500, 1e-10


class ReadOut(Enum):
    """Which of the three values to give."""

    RATIO = "E[ζr]"
    CRITIC = "(1−γ) E_μ0[ν] + λ"
    LAGRANGIAN = "(1−γ) E_μ0[ν] + λ + E[ζ (r + γν' − ν − λ)]"

    def __repr__(self) -> str:
        return f"ReadOut.{self.name}"


@dataclass(frozen=True)
class RegularizedLagrangian:
    """The family that DualDICE, GenDICE, GradientDICE, MWL, MQL and BestDICE are members of.

    Attributes:
        discount: γ in [0, 1]; 1 is the average reward, and needs norm=True.
        critic_regularizer: α_ν.
        ratio_regularizer: α_ζ.
        reward_weight: α_R, 0 or 1.
        positive: whether ζ ≥ 0; for tables.
        norm: whether E[ζ] = 1 is a constraint with a multiplier λ of its own.
        read_out: which value to give.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("continuing"), np.tile([0.1, 0.9], (13, 1))
        >>> data = mdp.sample(20_000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> estimate = gd.evaluate(data, gd.TabularPolicy(target), gd.RegularizedLagrangian.best_dice(1.0))
        >>> low, high = estimate.interval
        >>> bool(low < mdp.value(target, 1.0) < high)
        True
    """

    discount: float
    critic_regularizer: float = 0.0
    ratio_regularizer: float = 1.0
    reward_weight: float = 1.0
    positive: bool = False
    norm: bool = True
    read_out: ReadOut = ReadOut.RATIO

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)
        require_number("critic_regularizer", self.critic_regularizer, low=0)
        require_number("ratio_regularizer", self.ratio_regularizer, low=0)
        if require_number("reward_weight", self.reward_weight, low=0, high=1) not in (0.0, 1.0):
            raise InputError(f"reward_weight must be 0 or 1, not {self.reward_weight!r}.")
        for name in ("critic_regularizer", "ratio_regularizer"):
            if np.isinf(getattr(self, name)):
                raise InputError(f"{name} must be finite.")
        if not isinstance(self.read_out, ReadOut):
            raise InputError(f"read_out must be a ReadOut, not {self.read_out!r}.")
        if self.read_out is ReadOut.CRITIC and self.reward_weight == 0:
            raise InputError("With reward_weight=0 the critic knows nothing of the rewards: use ReadOut.RATIO.")

    @classmethod
    def best_dice(cls, discount: float) -> RegularizedLagrangian:
        """The paper's choice: a regularised ratio, ζ ≥ 0, with rewards and λ."""
        return cls(discount, 0.0, 1.0, 1.0, positive=True, norm=True)

    @classmethod
    def dual_dice(cls, discount: float) -> RegularizedLagrangian:
        """DualDICE with F = ½x²: a regularised ratio, no rewards, no λ; below discount 1."""
        return cls(discount, 0.0, 1.0, 0.0, positive=False, norm=False)

    @classmethod
    def gen_dice(cls, discount: float) -> RegularizedLagrangian:
        """Like GenDICE: a regularised critic, ζ ≥ 0, λ; GenDICE's own χ² weighs the critic's square by ζ."""
        return cls(discount, 1.0, 0.0, 0.0, positive=True, norm=True)

    @classmethod
    def gradient_dice(cls, discount: float) -> RegularizedLagrangian:
        """GradientDICE with E[τ] = 1 as a hard constraint: a regularised critic and λ."""
        return cls(discount, 1.0, 0.0, 0.0, positive=False, norm=True)

    @classmethod
    def mwl(cls, discount: float) -> RegularizedLagrangian:
        """MWL with the same functions on both sides: nothing but the flow; below discount 1."""
        return cls(discount, 0.0, 0.0, 0.0, positive=False, norm=False)

    @classmethod
    def mql(cls, discount: float) -> RegularizedLagrangian:
        """MQL with the same functions on both sides: nothing but the rewards, read off Q; below discount 1."""
        return cls(discount, 0.0, 0.0, 1.0, positive=False, norm=False, read_out=ReadOut.CRITIC)

    def answer(self, data: Transitions, policy: Policy, functions: Functions | MLP, seed: int) -> DirectAnswer:
        """The value read off the saddle point, with ζ and the value's influence values."""
        functions = linear_functions("RegularizedLagrangian", functions)
        if self.discount == 1 and not self.norm:
            raise InputError("At discount 1 nothing but E[ζ] = 1 sets the size of ζ: use norm=True.")
        if self.positive and not isinstance(functions, Tabular):
            raise InputError(
                "ζ ≥ 0 is for tables here: use positive=False, which is right wherever ζ is, or Tabular, or GenDICE "
                "with PrimalDual for a positive ratio of other functions."
            )
        pairing = Pairing.create(data, policy, functions, functions, self.discount, seed)
        system = _System.create(self, pairing, _white(pairing.ratio_gram, pairing.absorbing))
        if self.positive and (system.ratio < -1e-12).any():
            system = _optimal(self, pairing, _System.create(self, pairing, _active_basis(self, pairing)))
        value, shares = _read(self, pairing, system)
        notes = misfit_notes(pairing.ratio.functions)
        solution = Solution(system.ratio, system.critic, system.multiplier, system.status, system.stats)
        return DirectAnswer(
            value,
            pairing.row_share * shares.ratio,
            float(pairing.mean @ system.ratio),
            shares,
            describe(pairing.ratio.functions),
            system.status,
            solution,
            notes,
            cautions=_bias(self),
            bellman=not _bias(self),
        )


@dataclass(frozen=True, eq=False)
class _System:
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
    def create(cls, estimator: RegularizedLagrangian, pairing: Pairing, ratio_basis: np.ndarray) -> _System:
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


def _white(gram: np.ndarray, absorbing: bool) -> np.ndarray:
    """A white basis, in which the absorbing state, if there is one, is the last direction."""
    tolerance = ClosedForm().rank_tolerance
    if not absorbing:
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
    basis = _white(pairing.critic_gram, pairing.absorbing)
    if estimator.critic_regularizer > 0:
        return basis, estimator.norm
    if estimator.discount == 1:
        return without_constant(basis, pairing.critic_mean), estimator.norm
    constant = basis.T @ pairing.critic_mean
    return basis, estimator.norm and bool(1 - constant @ constant > CONSTANT_OUTSIDE)


def _active_basis(estimator: RegularizedLagrangian, pairing: Pairing) -> np.ndarray:
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


def _optimal(estimator: RegularizedLagrangian, pairing: Pairing, system: _System) -> _System:
    """The system, marked if ζ is negative somewhere or would gain where it is 0."""
    gain = estimator.reward_weight * pairing.reward - pairing.flow.T @ system.critic - system.multiplier * pairing.mean
    size = float(np.abs(pairing.mean * system.ratio).max())
    outside = system.ratio == 0
    wrong = float(np.maximum(gain[outside], 0).max(initial=0)) + float(
        np.maximum(-pairing.mean * system.ratio, 0).max()
    )
    return system if wrong <= 1e-7 * size else replace(system, status=Status.NOT_CONVERGED)


def _read(estimator: RegularizedLagrangian, pairing: Pairing, system: _System) -> tuple[float, Influence]:
    """The value and its influence values.

    A value V of (w, κ, λ) and the moments moves by its own derivative and by zᵀ(dt − dS y), where S y = t is the system
    and S z = ∂V/∂y. With z = (z₁, z₂, z₃) the second part is, at one row,

        α_R r(xᵀz₁) − (xᵀz₁)(α_ζ ζ + δᵀκ + λ) − (δᵀz₂)ζ + α_ν (xᵀz₂)ν − z₃ζ,

    and (1−γ)bᵀz₂ for the initial states, or bᵀ(z₂ E[1{ended}ζ] + κ E[1{ended}xᵀz₁]) where episodes restart.
    """
    w, kappa, lam = system.ratio, system.critic, system.multiplier
    reward, start = pairing.reward, pairing.start
    nothing = np.zeros_like(kappa)
    dual = float(start @ kappa) + lam
    if estimator.read_out is ReadOut.RATIO:
        value, gradient = float(reward @ w), (reward, nothing, 0.0)
    elif estimator.read_out is ReadOut.CRITIC:
        value, gradient = dual, (np.zeros_like(w), start, 1.0)
    else:
        surplus = reward - pairing.flow.T @ kappa - lam * pairing.mean
        value = dual + float(surplus @ w)
        gradient = (surplus, start - pairing.flow @ w, 1 - float(pairing.mean @ w))
    z1, z2, z3 = system.adjoint(*gradient)
    (zeta, slope), (nu, test), (change, move) = (
        part.T for part in pairing.over_rows(np.column_stack([w, z1]), np.column_stack([kappa, z2]))
    )
    rewards = pairing.ratio.data.rewards
    raw = slope * (estimator.reward_weight * rewards - estimator.ratio_regularizer * zeta - change - lam)
    raw += estimator.critic_regularizer * test * nu - move * zeta - z3 * zeta
    ended = pairing.ended @ np.column_stack([w, z1])
    direction = (1 - estimator.discount) * z2
    if pairing.restarts:
        direction = z2 * ended[0] + kappa * ended[1]
    residual = rewards - change - lam
    if estimator.read_out is ReadOut.RATIO:
        raw += zeta * rewards
        residual = rewards - move - z3
    elif estimator.read_out is ReadOut.CRITIC:
        direction = direction + (1 - estimator.discount) * kappa
    else:
        raw += zeta * residual
        direction = direction + (kappa * ended[0] if pairing.restarts else (1 - estimator.discount) * kappa)
    return value, pairing.shares(raw, direction, zeta, residual)


def _bias(estimator: RegularizedLagrangian) -> tuple[str, ...]:
    """Which regulariser biases the value read off, if one does; the interval does not know it."""
    ratio, critic = estimator.ratio_regularizer > 0, estimator.critic_regularizer > 0
    with_reward = estimator.reward_weight == 1
    biased = {
        ReadOut.RATIO: critic and (ratio or with_reward),
        ReadOut.CRITIC: ratio or (critic and estimator.positive),
        ReadOut.LAGRANGIAN: critic and (ratio or (with_reward and estimator.positive)),
    }[estimator.read_out]
    return ("the regularisers bias the value read off, and the interval does not know it",) if biased else ()
