"""How far a pair (w, y) is from the saddle point over two balls, exactly, for a quadratic saddle such as GradientDICE.

    ε_opt(w, y) = max_{‖y'‖ ≤ R_Y} L(w, y') − min_{‖w'‖ ≤ R_W} L(w', y),   y = [κ; η].

It is 0 only at the saddle point. L is a concave quadratic in y and a convex one in w, so that both inner
problems are trust-region problems with a one-dimensional secular equation.

References:
    Zhang, Liu and Whiteson 2020, section 4.3. ("L(w,y) = 0 iff" there should read ε_opt(w,y) = 0 iff.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq

from gradientdice.dice.saddle import QuadraticSaddle
from gradientdice.problem.moments import Moments


@dataclass(frozen=True, eq=False)
class SaddleProblem:
    """L(w, y) = yᵀh(w) − ½yᵀQy + ½ξ‖w‖² with h(w) = [(1−γ)b − Aw; λ(vᵀw − 1)] and Q = diag(C, λ)."""

    estimator: QuadraticSaddle
    moments: Moments
    ratio_radius: float
    critic_radius: float

    def gap(
        self, ratio_params: Float[np.ndarray, " K"], critic_params: Float[np.ndarray, " K"], norm_multiplier: float
    ) -> float:
        """ε_opt(w, y)."""
        y = np.append(critic_params, norm_multiplier)
        return self._best_response_value(ratio_params) - self._best_ratio_value(y)

    def _best_response_value(self, w: np.ndarray) -> float:
        matrix, offset, quadratic = self.estimator.coupling(self.moments)
        value = maximise_concave(quadratic, offset + matrix @ w, self.critic_radius)
        return value + 0.5 * self.estimator.ridge * float(w @ w)

    def _best_ratio_value(self, y: np.ndarray) -> float:
        matrix, offset, quadratic = self.estimator.coupling(self.moments)
        ridge = self.estimator.ridge * np.eye(matrix.shape[1])
        fixed = float(y @ offset - 0.5 * y @ quadratic @ y)
        return fixed - maximise_concave(ridge, -matrix.T @ y, self.ratio_radius)


def maximise_concave(quadratic: Float[np.ndarray, "k k"], linear: Float[np.ndarray, " k"], radius: float) -> float:
    """Max over ‖z‖ ≤ radius of linearᵀz − ½ zᵀ quadratic z, for a positive semidefinite quadratic."""
    values, vectors = np.linalg.eigh(quadratic)
    values = np.maximum(values, 0.0)
    h = vectors.T @ linear

    if not h.any():
        return 0.0

    def point(multiplier: float) -> np.ndarray:
        return h / (values + multiplier)

    def excess(multiplier: float) -> float:
        return float(np.linalg.norm(point(multiplier))) - radius

    # Where the ball binds, ‖(Q + μI)⁻¹h‖ = radius for one μ > 0, and μ ≤ ‖h‖ / radius.
    high = float(np.linalg.norm(h)) / radius * (1 + 1e-9)
    low = 1e-14 * high
    multiplier = low if excess(low) <= 0 else float(brentq(excess, low, high, xtol=1e-15 * high))  # pyright: ignore[reportArgumentType]
    z = point(multiplier)
    return float(h @ z - 0.5 * np.sum(values * z**2))
