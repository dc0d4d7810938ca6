"""Newton's method for a quadratic with squared hinges: the dual of a strictly convex programme with w ≥ 0.

    min_s  ½ sᵀHs + hᵀs + ½ Σ_i m_i (a_i − ψ_iᵀs)₊²,

where the multipliers w_i = m_i (a_i − ψ_iᵀs)₊ are the programme's solution. The function is convex with pieces that are
quadratic, so that a Newton step with an exact line search ends at the minimum once the set of positive terms is right:
some ten steps of O(nK²) work, in O(nK) memory.

References:
    Mangasarian, A Finite Newton Method for Classification, Optimization Methods and Software 2002.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from jaxtyping import Float

CHUNK = 16_384


@dataclass(frozen=True, eq=False)
class HingeProblem:
    """A quadratic with squared hinges, by its H, h, ψ, a and m; H may be singular."""

    quadratic: Float[np.ndarray, "K K"]
    linear: Float[np.ndarray, " K"]
    features: Float[np.ndarray, "n K"]
    targets: Float[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]

    def slack(self, point: Float[np.ndarray, " K"]) -> Float[np.ndarray, " n"]:
        """The hinges' terms before they are cut at 0: a − ψs."""
        return self.targets - self.features @ point

    def value(self, point: Float[np.ndarray, " K"]) -> float:
        """The objective at a point."""
        smooth = 0.5 * point @ self.quadratic @ point + self.linear @ point
        return float(smooth + 0.5 * self.weights @ np.maximum(self.slack(point), 0.0) ** 2)

    def multipliers(self, slack: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The dual programme's weights w."""
        return self.weights * np.maximum(slack, 0.0)

    def hessian(self, slack: Float[np.ndarray, " n"]) -> Float[np.ndarray, "K K"]:
        """The Hessian H + Σ m ψψᵀ over the positive terms."""
        total = np.array(self.quadratic, dtype=np.float64)
        for start in range(0, len(slack), CHUNK):
            active = start + np.flatnonzero(slack[start : start + CHUNK] > 0)
            scaled = self.features[active] * np.sqrt(self.weights[active])[:, None]
            total += scaled.T @ scaled
        return total


@dataclass(frozen=True, eq=False)
class HingeSolution:
    """The end point of Newton's method.

    Attributes:
        point: s.
        multipliers: w.
        gradient: the norm of the objective's gradient there.
        steps: how many were taken.
    """

    point: Float[np.ndarray, " K"]
    multipliers: Float[np.ndarray, " n"]
    gradient: float
    steps: int


def minimise(
    problem: HingeProblem, start: Float[np.ndarray, " K"], *, tolerance: float = 1e-12, steps: int = 100
) -> HingeSolution:
    """Take Newton steps until the gradient is below the tolerance, or a full step has kept the positive terms.

    After such a step the point is the minimum of its piece and so of the whole, to rounding.
    """
    point, best, settled = np.array(start, dtype=np.float64), None, False
    slack = problem.slack(point)
    for step in range(steps + 1):
        weights = problem.multipliers(slack)
        gradient = problem.quadratic @ point + problem.linear - problem.features.T @ weights
        size = float(np.linalg.norm(gradient))
        if best is None or size < best.gradient:
            best = HingeSolution(point, weights, size, step)
        if size <= tolerance or settled or step == steps:
            break
        direction = _solve(problem.hessian(slack), -gradient)
        along = problem.features @ direction
        length = _line_search(problem, point, direction, slack, along)
        if length <= 0:
            break
        point = point + length * direction
        before, slack = slack, problem.slack(point)
        settled = abs(length - 1) < 1e-6 and np.array_equal(before > 0, slack > 0)
    assert best is not None
    return best


def _solve(hessian: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """A descent direction; a hair is added to the diagonal as long as the Hessian is not positive definite."""
    hair = np.finfo(np.float64).eps * max(float(np.trace(hessian)), np.finfo(np.float64).tiny)
    for _ in range(12):
        try:
            factor = scipy.linalg.cho_factor(hessian + hair * np.eye(len(hessian)), check_finite=False)
        except np.linalg.LinAlgError:
            hair *= 10
            continue
        return np.asarray(scipy.linalg.cho_solve(factor, vector, check_finite=False))
    return vector


def _line_search(
    problem: HingeProblem, point: np.ndarray, direction: np.ndarray, slack: np.ndarray, along: np.ndarray
) -> float:
    """The least point of the objective along a direction: where its slope, which only grows, is 0."""
    curve = float(direction @ problem.quadratic @ direction)
    base = float(direction @ (problem.quadratic @ point + problem.linear))

    def slope(length: float) -> float:
        return base + length * curve - float(problem.multipliers(slack - length * along) @ along)

    if slope(0.0) >= 0:
        return 0.0
    # Near the end a full step is exact, and a search for more digits than the slope has would only add noise.
    if abs(slope(1.0)) <= 1e-10 * abs(slope(0.0)):
        return 1.0
    low, high = 0.0, 1.0
    while slope(high) < 0 and high < 1e12:
        low, high = high, 4 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return high
