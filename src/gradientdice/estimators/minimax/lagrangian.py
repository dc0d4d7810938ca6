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

from dataclasses import dataclass
from enum import Enum

import numpy as np

from gradientdice.base.errors import InputError, require_flag, require_number
from gradientdice.dice.saddle import Solver
from gradientdice.dice.solution import Solution
from gradientdice.estimators.answer import Answer, Declares
from gradientdice.estimators.minimax.lagrangian_system import (
    SaddleSystem,
    active_basis,
    marked_if_not_optimal,
    white_basis,
)
from gradientdice.estimators.minimax.pairing import Pairing
from gradientdice.estimators.needs import require_needs
from gradientdice.estimators.saddle.estimator import misfit_notes
from gradientdice.problem.problem import Problem, describe
from gradientdice.statistics.evidence import Evidence
from gradientdice.statistics.influence import Influence


class ReadOut(Enum):
    """Which of the three values to give."""

    RATIO = "E[ζr]"
    CRITIC = "(1−γ) E_μ0[ν] + λ"
    LAGRANGIAN = "(1−γ) E_μ0[ν] + λ + E[ζ (r + γν' − ν − λ)]"

    def __repr__(self) -> str:
        return f"ReadOut.{self.name}"


@dataclass(frozen=True)
class RegularizedLagrangian(Declares):
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
        >>> estimate = gd.evaluate(
        ...     data, gd.TabularPolicy(target), gd.RegularizedLagrangian.best_dice(1.0)
        ... )
        >>> low, high = estimate.interval
        >>> bool(low < mdp.value(target, 1.0) < high)
        True
    """

    family = "minimax"
    reference = "Yang, Nachum et al., NeurIPS 2020"
    refusal = "At discount 1 nothing but E[ζ] = 1 sets the size of ζ: use norm=True."

    discount: float
    critic_regularizer: float = 0.0
    ratio_regularizer: float = 1.0
    reward_weight: float = 1.0
    positive: bool = False
    norm: bool = True
    read_out: ReadOut = ReadOut.RATIO

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)
        require_flag("positive", self.positive)
        require_flag("norm", self.norm)
        require_number("critic_regularizer", self.critic_regularizer, low=0)
        require_number("ratio_regularizer", self.ratio_regularizer, low=0)
        if require_number("reward_weight", self.reward_weight, low=0, high=1) not in (0.0, 1.0):
            raise InputError(f"reward_weight must be 0 or 1, not {self.reward_weight!r:.60}.")
        if not isinstance(self.read_out, ReadOut):
            raise InputError(f"read_out must be a ReadOut, not {self.read_out!r:.60}.")
        if self.read_out is ReadOut.CRITIC and self.reward_weight == 0:
            raise InputError("With reward_weight=0 the critic knows nothing of the rewards: use ReadOut.RATIO.")

    @property
    def discounted_only(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Without E[ζ] = 1 nothing sets the size of ζ at discount 1."""
        return not self.norm

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

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """The value read off the saddle point, with ζ and the value's influence values."""
        require_needs(self, problem, solver)
        if self.positive and problem.support is None:
            raise InputError(
                "ζ ≥ 0 is for tables here: use positive=False, which is right wherever ζ is, or Tabular, or GenDICE "
                "with PrimalDual for a positive ratio of other functions."
            )
        pairing = Pairing.create(problem, self.discount)
        system = SaddleSystem.create(self, pairing, white_basis(pairing.ratio_gram, pairing))
        if self.positive and (system.ratio < -1e-12).any():
            system = marked_if_not_optimal(
                self, pairing, SaddleSystem.create(self, pairing, active_basis(self, pairing))
            )
        value, shares = _read(self, pairing, system)
        solution = Solution(system.ratio, system.critic, system.multiplier, system.status, system.stats)
        return Answer(
            value=value,
            influence=shares,
            ratio=problem.row_share(self.discount) * shares.ratio,
            solution=solution,
            evidence=Evidence(mean_ratio=float(pairing.mean @ system.ratio), bellman=not _bias(self)),
            functions=describe(pairing.ratio.functions),
            status=system.status,
            notes=misfit_notes(problem),
            cautions=_bias(self),
        )


def _read(estimator: RegularizedLagrangian, pairing: Pairing, system: SaddleSystem) -> tuple[float, Influence]:
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
    """A caution if a regulariser biases the value read off, which the interval does not cover."""
    ratio, critic = estimator.ratio_regularizer > 0, estimator.critic_regularizer > 0
    with_reward = estimator.reward_weight == 1
    biased = {
        ReadOut.RATIO: critic and (ratio or with_reward),
        ReadOut.CRITIC: ratio or (critic and estimator.positive),
        ReadOut.LAGRANGIAN: critic and (ratio or (with_reward and estimator.positive)),
    }[estimator.read_out]
    return ("the regularisers bias the value read off, and the interval does not cover that",) if biased else ()
