"""MQL, minimax Q-function learning: the Q whose Bellman residual no weight of an RKHS can see,

    min_θ  sup_{‖w‖ ≤ 1} E[w (r + γQ̄' − Q)]²  =  min_θ ‖ E[z (r − (x − γx̄')ᵀθ)] ‖²,   Q = x·θ,

for the kernel ⟨z, z'⟩ of the discriminator's features z: with Z = X − γX̄' and K = zzᵀ over the rows it is
θ = (ZᵀKZ)⁻¹ZᵀKr, here without any n × n matrix. The value is (1−γ) E_μ0[Q̄]. At γ = 1 the residual is
r − ρ + Q̄' − Q with ρ unknown beside θ, and where the features have a constant among them E[Q] = 0 pins it.

The value is linear in the rewards: it is that of the ratio z·p, p = G(GᵀG)⁻¹(1−γ)b, G = E[z (x − γx̄')ᵀ]. If both
classes are the same and G is invertible, the answer is LSTDQ's. It is the target's value if Q is in the span of x, or
else if the true ratio is in that of z and the residual vanishes.

References:
    Uehara, Huang and Jiang, Minimax Weight and Q-Function Learning for Off-Policy Evaluation, ICML 2020, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from gradientdice.base.errors import InputError, require_number
from gradientdice.dice.closed_form import whitening
from gradientdice.dice.linear_systems import FactoredLeastSquares
from gradientdice.dice.saddle import LeastSquares, Solver
from gradientdice.dice.solution import Solution
from gradientdice.estimators.answer import Answer, Declares
from gradientdice.estimators.minimax.pairing import Pairing
from gradientdice.estimators.needs import require_needs
from gradientdice.estimators.saddle.estimator import misfit_notes
from gradientdice.functions import LinearFunctions
from gradientdice.problem.entrance import require_functions
from gradientdice.problem.problem import Problem, describe
from gradientdice.statistics.evidence import Evidence

# A constant is in the span of the features if so little of its square is outside.
CONSTANT_OUTSIDE = 1e-8


@dataclass(frozen=True)
class MQL(Declares):
    """Minimax Q-function learning.

    Attributes:
        discount: γ in [0, 1]; 1 is the average reward.
        discriminator: whose features weigh the residuals; by default those of Q. Random Fourier or Nyström features
            approximate a kernel in O(nK) memory. There must be at least as many as Q has.
        rank_tolerance: directions of Q's features with less than this share of the largest are dropped; None leaves it
            to the function class.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("episodic"), np.tile([0.1, 0.9], (13, 1))
        >>> data = mdp.sample(5000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> first, second = gd.MQL(0.9), gd.LSTDQ(0.9)
        >>> values = [
        ...     gd.evaluate(data, gd.TabularPolicy(target), estimator).value
        ...     for estimator in (first, second)
        ... ]
        >>> bool(np.isclose(*values))
        True
    """

    family = "minimax"
    reference = "Uehara, Huang and Jiang, ICML 2020"

    discount: float
    discriminator: LinearFunctions | None = None
    rank_tolerance: float | None = None

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)
        require_functions(self.discriminator, "discriminator")
        if self.rank_tolerance is not None:
            require_number("rank_tolerance", self.rank_tolerance, low=0, high=1)

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """The value, with the ratio that it implies and its influence values."""
        require_needs(self, problem, solver)
        # Here the discriminator is the class of weights, and Q the class whose change along transitions counts.
        return self._solved(problem, Pairing.create(problem, self.discount, ratio=self.discriminator))

    def _solved(self, problem: Problem, pairing: Pairing) -> Answer:
        """The least-squares problem for y = (θ, ρ) and the sensitivity of its value ℓᵀy to the data.

        With G the matrix of the problem, e = c − Gy, q = (GᵀG)⁻¹ℓ and p = Gq, the residual ε = r − δᵀθ − ρ gives

            IF = ε(zᵀp) + (δᵀq)(zᵀe) − mean,

        and b adds (1−γ)bᵀθ; where episodes restart it is bᵀ(θ E[1{ended}zᵀp] − q E[1{ended}zᵀe]).
        """
        average = self.discount == 1
        basis = self._basis(pairing)
        rank = basis.shape[1]
        if average:
            basis = without_constant(basis, pairing.critic_mean)
        matrix, goal = pairing.flow.T @ basis, basis.T @ pairing.start
        if average:
            matrix, goal = np.column_stack([matrix, pairing.mean]), np.append(np.zeros(basis.shape[1]), 1.0)
        if len(matrix) < matrix.shape[1]:
            raise InputError(
                f"MQL's discriminator has {len(matrix)} features and Q {matrix.shape[1]} parameters"
                f"{', the average reward among them' if average else ''}: Q is not unique. Give a discriminator with "
                "at least as many, a constant feature, or fewer functions."
            )
        factored = FactoredLeastSquares(LeastSquares(matrix, pairing.reward))
        params, q = factored.solution, factored.apply_inverse(goal)
        p, e = matrix @ q, pairing.reward - matrix @ params
        # p and ℓ are exact to rounding; the value is taken from the rewards, which is what the ratio promises.
        value = float(p @ pairing.reward)
        size = float(pairing.mean @ p)
        if pairing.absorbing:
            # Nothing here weighs the absorbing state; what flows into it stays there.
            size = float(pairing.mean[:-1] @ p[:-1] + self.discount / (1 - self.discount) * (pairing.ended @ p))
        rho, slope = (float(params[-1]), float(q[-1])) if average else (0.0, 0.0)
        count = basis.shape[1]
        critic = basis @ np.column_stack([params[:count], q[:count]])
        (tau, seen), _, (change, move) = (part.T for part in pairing.over_rows(np.column_stack([p, e]), critic))
        residual = pairing.ratio.data.rewards - change - rho
        raw = residual * tau + (move + slope) * seen
        direction = (1 - self.discount) * critic[:, 0]
        if pairing.restarts:
            direction = critic[:, 0] * float(pairing.ended @ p) - critic[:, 1] * float(pairing.ended @ e)
        shares = pairing.shares(raw, direction, tau, residual)
        stats = {
            "condition_number": factored.condition_number,
            "rank": rank,
            "num_features": len(pairing.critic_mean),
            "discriminators": len(matrix),
        }
        solution = Solution(p, critic[:, 0], rho, factored.status, stats)
        return Answer(
            value=value,
            influence=shares,
            ratio=problem.row_share(self.discount) * tau,
            solution=solution,
            evidence=Evidence(mean_ratio=size, bellman=True),
            functions=describe(pairing.critic.functions),
            status=factored.status,
            notes=misfit_notes(problem),
        )

    def _basis(self, pairing: Pairing) -> np.ndarray:
        """A white basis of Q's features. Q is known to be 0 in the absorbing state and has no parameter there."""
        tolerance = pairing.critic.functions.rank_tolerance if self.rank_tolerance is None else self.rank_tolerance
        if not pairing.absorbing:
            return whitening(pairing.critic_gram, tolerance)
        basis = whitening(pairing.critic_gram[:-1, :-1], tolerance)
        return np.vstack([basis, np.zeros(basis.shape[1])])


def without_constant(basis: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The basis without its constant direction, if it has one: functions of mean 0.

    In a white basis the constant's projection has the coefficients E[x], whose square is 1 if it is in the span.
    """
    constant = basis.T @ mean
    if 1 - constant @ constant > CONSTANT_OUTSIDE:
        return basis
    return basis @ scipy.linalg.null_space(constant[None])
