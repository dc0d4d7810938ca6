"""GradientDICE: min over τ, max over f and η, of

    (1−γ) E_μ0[f] + γ E[τ f'] − E[τ f] − ½ E[f²] + λ (E[ητ − η] − ½η²) + ½ξ‖w‖².

Unlike GenDICE it needs no positive τ, so with linear τ and f it is convex-concave and has a closed form.

References:
    Zhang, Liu and Whiteson, GradientDICE: Rethinking Generalized Offline Estimation of Stationary Values,
    ICML 2020, the saddle problem of section 4 and the KKT system of section 4.1. The paper holds ξ > 0 to be
    necessary at γ = 1; it is not: AᵀC⁻¹A + λvvᵀ is nonsingular iff null(A) ∩ v^⊥ = {0}, as in any ergodic table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import require_number
from gradientdice.dice.saddle import Adjoint, LeastSquares, Terms, WhitenedMoments
from gradientdice.estimators.saddle.estimator import SaddleEstimator
from gradientdice.problem.moments import Moments


@dataclass(frozen=True)
class GradientDICE(SaddleEstimator):
    """Gradient stationary DIstribution Correction Estimation.

    Attributes:
        discount: γ in [0, 1]; 1 is the average reward.
        norm_penalty: λ, the weight of the constraint E[τ] = 1; math.inf makes it hard (closed form only).
        ridge: ξ in ½ξ‖w‖². It biases the answer by O(ξ); 0 is right unless the system is singular.

    Example:
        >>> import gradientdice as gd
        >>> gd.GradientDICE(discount=0.99).norm_penalty
        1.0
    """

    discount: float
    norm_penalty: float = 1.0
    ridge: float = 0.0

    reference = "Zhang, Liu and Whiteson, ICML 2020"
    ratio_minimises: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)
        require_number("norm_penalty", self.norm_penalty, low=0, infinite=True)
        require_number("ridge", self.ridge, low=0)

    @property
    def solves_flow(self) -> bool:
        """With a table the flow equations can be solved exactly, and nothing else pulls unless there is a ridge."""
        return self.ridge == 0 and self.norm_penalty > 0

    def ratio(self, raw: Any) -> Any:
        """τ is the function's output itself; nothing forces it to be positive."""
        return raw

    def objective(self, terms: Terms) -> Any:
        """The saddle objective of one transition, without the ridge."""
        tau, f, f_next, f_initial, eta = terms
        gamma, lam = self.discount, self.norm_penalty
        flow = (1 - gamma) * f_initial + gamma * tau * f_next - tau * f - 0.5 * f**2
        return flow + lam * (eta * tau - eta - 0.5 * eta**2)

    def least_squares(self, m: WhitenedMoments) -> LeastSquares:
        """The minimisation over w that is left when f and η are maximised out.

        With C = I it is ½‖Āw̄ − (1−γ)b̄‖² + ½λ(v̄ᵀw̄ − 1)² + ½ξ‖Tw̄‖², whose normal equations are the paper's
        KKT system. As least squares its condition number is not squared.
        """
        if math.isinf(self.norm_penalty):
            soft_matrix, soft_target, constraint = [m.bellman], [m.initial], m.mean
        else:
            weight = math.sqrt(self.norm_penalty)
            soft_matrix, soft_target, constraint = (
                [m.bellman, weight * m.mean[None]],
                [m.initial, np.array([weight])],
                None,
            )
        if self.ridge > 0:
            soft_matrix.append(math.sqrt(self.ridge) * m.basis)
            soft_target.append(np.zeros(len(m.basis)))
        return LeastSquares(np.concatenate(soft_matrix), np.concatenate(soft_target), constraint)

    def critic(
        self, m: WhitenedMoments, ratio_params: Float[np.ndarray, " r"]
    ) -> tuple[Float[np.ndarray, " r"], float]:
        """κ̄ = (1−γ)b̄ − Āw̄ and η = v̄ᵀw̄ − 1, the maximisers given w̄."""
        return m.initial - m.bellman @ ratio_params, float(m.mean @ ratio_params - 1)

    def adjoint(
        self,
        m: WhitenedMoments,
        inverse: Callable[[Float[np.ndarray, " r"]], Float[np.ndarray, " r"]],
        reward: Float[np.ndarray, " r"],
        critic: Float[np.ndarray, " r"],
        norm_multiplier: float,
    ) -> Adjoint:
        """The adjoint: q = M⁻¹c and p = C⁻¹Aq, with M the matrix of the KKT system (`inverse` applies M⁻¹)."""
        q = inverse(reward)
        p = m.bellman @ q
        if not math.isinf(self.norm_penalty):
            return Adjoint(q, critic, p, self.norm_penalty * norm_multiplier, self.norm_penalty * float(m.mean @ q))
        # The bordered system [[M, v], [vᵀ, 0]]: its multipliers stand where λη and λvᵀq do.
        size = float(m.mean @ m.mean) or 1.0
        force = float(m.mean @ (m.bellman.T @ critic)) / size
        return Adjoint(q, critic, p, force, float(m.mean @ (reward - m.bellman.T @ p)) / size)

    def coupling(self, moments: Moments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """M, m and Q of L(w, y) = yᵀ(m + Mw) − ½yᵀQy + ½ξ‖w‖², y = [κ; η]: m + Mw = [(1−γ)b − Aw; λ(vᵀw − 1)]."""
        gamma, lam = self.discount, self.norm_penalty
        moments = moments.for_discount(gamma)
        size = moments.num_features
        matrix = np.vstack([-moments.bellman(gamma), lam * moments.mean])
        offset = np.append(moments.initial_for(gamma), -lam)
        quadratic = np.zeros((size + 1, size + 1))
        quadratic[:size, :size], quadratic[size, size] = moments.gram, lam
        return matrix, offset, quadratic
