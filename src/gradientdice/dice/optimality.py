"""Distance of learned parameters from the saddle point.

For a quadratic saddle with linear functions, such as GradientDICE, the log's moments say it exactly:

- With P(w) = max_y L(w, y), y = [κ; η], the share (P(w) − P*) / (P(0) − P*) is 1 before any step and 0 at the saddle
  point.
- Over two balls ε_opt(w, y) = max_{‖y'‖ ≤ R_Y} L(w, y') − min_{‖w'‖ ≤ R_W} L(w', y) is 0 only at the saddle point. L is
  a concave quadratic in y and a convex one in w, so that both inner problems are trust-region problems with a
  one-dimensional secular equation.

For other objectives and for networks there is the drift of the recorded value over the last two fifths of the run.

References:
    Zhang, Liu and Whiteson 2020, section 4.3. ("L(w,y) = 0 iff" there should read ε_opt(w,y) = 0 iff.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq

from gradientdice.dice.closed_form import ClosedForm
from gradientdice.dice.saddle import QuadraticSaddle
from gradientdice.dice.solution import Curve
from gradientdice.problem.moments import Moments

# On Boyan's Chain, at four discounts, runs within 2% of the closed form's value have shares of at most 0.02, and runs
# that are off by more than 10% have shares above 0.1.
UNSOLVED_CAUTION, UNSOLVED_ALARM = 0.02, 0.1
# In standard deviations of the rewards.
DRIFT_CAUTION, DRIFT_ALARM = 0.05, 0.25
# A curve with fewer points has no last fifths.
FEWEST_POINTS = 10


@dataclass(frozen=True, eq=False)
class SaddleProblem:
    """The problem L(w, y) = yᵀh(w) − ½yᵀQy + ½ξ‖w‖² with h(w) = [(1−γ)b − Aw; λ(vᵀw − 1)] and Q = diag(C, λ)."""

    estimator: QuadraticSaddle
    moments: Moments
    ratio_radius: float
    critic_radius: float

    def gap(
        self, ratio_params: Float[np.ndarray, " K"], critic_params: Float[np.ndarray, " K"], norm_multiplier: float
    ) -> float:
        """The optimality gap ε_opt(w, y)."""
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
    """The largest value over ‖z‖ ≤ radius of linearᵀz − ½ zᵀ quadratic z, for a positive semidefinite quadratic."""
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


def unsolved_share(estimator: Any, moments: Moments, ratio_params: Float[np.ndarray, " K"]) -> float | None:
    """The share of the objective that is left to go; None where the objective is not a quadratic saddle.

    Args:
        estimator: any saddle objective.
        moments: of the log that it was learned from.
        ratio_params: w, as learned.
    """
    if not isinstance(estimator, QuadraticSaddle) or math.isinf(estimator.norm_penalty):
        return None
    moments = moments.for_discount(estimator.discount)
    matrix, offset, quadratic = estimator.coupling(moments)
    inverse = np.linalg.pinv(quadratic, hermitian=True)

    def primal(w: np.ndarray) -> float:
        flow = offset + matrix @ w
        return 0.5 * float(flow @ inverse @ flow) + 0.5 * estimator.ridge * float(w @ w)

    best = primal(ClosedForm().solve(estimator, moments).ratio_params)
    start = primal(np.zeros(matrix.shape[1])) - best
    return (primal(ratio_params[: matrix.shape[1]]) - best) / start if start > 0 else 0.0


def drift(curve: Curve, rewards: Float[np.ndarray, " n"]) -> float | None:
    """Move of the recorded value between the last two fifths of a run, in standard deviations of the rewards.

    None for a curve that is too short or not finite, and for rewards that are all alike.
    """
    spread, fifth = float(np.std(rewards)), len(curve.values) // 5
    if len(curve.values) < FEWEST_POINTS or spread == 0 or not np.isfinite(curve.values).all():
        return None
    last, before = curve.values[-fifth:], curve.values[-2 * fifth : -fifth]
    return float(abs(last.mean() - before.mean())) / spread
