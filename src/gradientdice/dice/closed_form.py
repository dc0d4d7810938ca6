"""The closed form: whiten the features, drop the directions the data do not show, solve least squares in float64.

A ridge on the raw system is badly biased for rich features. Whitening with a rank cut-off is not: it solves
the same problem with ξ = 0 in the subspace that the data determine. Features are first scaled to unit mean
square, so that a table with rarely logged pairs loses none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import InputError, require_number
from gradientdice.dice.linear_systems import FactoredLeastSquares, congruent, eigen
from gradientdice.dice.saddle import LinearEstimator, WhitenedMoments
from gradientdice.dice.solution import Fit, LinearFit, Solution
from gradientdice.problem.moments import Moments
from gradientdice.problem.problem import Problem
from gradientdice.problem.sound import as_moments, require_sound


@dataclass(frozen=True)
class ClosedForm:
    """The exact solver for linear and tabular functions: no learning rate, no iterations.

    Attributes:
        rank_tolerance: directions whose share of the scaled features' second moment is below this fraction
            of the largest are dropped; None leaves it to the function class.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp = gd.mdp.single_state()
        >>> uniform = np.array([[0.5, 0.5]])
        >>> moments = gd.Moments.exact(mdp, uniform, np.eye(2), uniform)
        >>> gd.ClosedForm().solve(gd.GradientDICE(discount=1.0), moments).ratio_params.round(
        ...     12
        ... )
        array([1., 1.])
    """

    rank_tolerance: float | None = None

    def __post_init__(self) -> None:
        if self.rank_tolerance is not None:
            require_number("rank_tolerance", self.rank_tolerance, low=0, high=1)

    def solve(self, estimator: Any, moments: Moments) -> Solution:
        """The estimator's saddle point for these moments.

        Raises:
            InputError: if the estimator has no closed form, or the moments have a NaN or lack initial states.
        """
        return self.fit_moments(require_linear(estimator), moments).solution

    def fit(self, estimator: Any, problem: Problem) -> Fit:
        """The saddle point on a problem, with what influence values need."""
        linear = self.fit_moments(require_linear(estimator), problem.moments)
        return Fit(linear.value, linear.mean_ratio, linear.solution, linear=linear)

    def fit_moments(self, estimator: LinearEstimator, moments: Moments) -> LinearFit:
        """The saddle point together with the value and its sensitivity to the data."""
        return self.fit_each([estimator], moments)[0]

    def fit_each(self, estimators: Sequence[LinearEstimator], moments: Moments) -> list[LinearFit]:
        """A fit for each estimator; those with the same moments share the basis in which C = I."""
        fits, last, basis = [], None, np.zeros((0, 0))
        for estimator in estimators:
            used = as_moments(moments).for_discount(estimator.discount)
            if used is not last:
                require_sound(used)
                tolerance = used.rank_tolerance if self.rank_tolerance is None else self.rank_tolerance
                last, basis = used, whitening(used.gram, tolerance)
            fits.append(self._fit(estimator, used, basis))
        return fits

    def _fit(self, estimator: LinearEstimator, moments: Moments, basis: np.ndarray) -> LinearFit:
        discount = estimator.discount
        whitened = WhitenedMoments(
            basis,
            congruent(basis, moments.bellman(discount)),
            basis.T @ moments.mean,
            basis.T @ moments.initial_for(discount),
        )
        factored = FactoredLeastSquares(estimator.least_squares(whitened))
        ratio = factored.solution
        critic, norm_multiplier = estimator.critic(whitened, ratio)
        stats = {
            "condition_number": factored.condition_number,
            "rank": basis.shape[1],
            "num_features": moments.num_features,
        }
        solution = Solution(basis @ ratio, basis @ critic, norm_multiplier, factored.status, stats)
        reward = basis.T @ moments.reward
        adjoint = estimator.adjoint(whitened, factored.apply_inverse, reward, critic, norm_multiplier)
        adjoint = adjoint._replace(
            ratio=basis @ adjoint.ratio, flow=basis @ adjoint.flow, critic=basis @ adjoint.critic
        )
        return LinearFit(discount, moments, solution, adjoint)


def require_linear(estimator: Any) -> LinearEstimator:
    """The estimator itself, or an error if it has no closed form."""
    if not isinstance(estimator, LinearEstimator):
        raise InputError(
            f"{type(estimator).__name__} has no closed form with these functions: use PrimalDual, or GradientDICE or "
            "DualDICE(power=2) with ClosedForm."
        )
    return estimator


def whitening(gram: Float[np.ndarray, "K K"], rank_tolerance: float) -> Float[np.ndarray, "K r"]:
    """A basis in which C = I, of the directions that the data show: C is first scaled to a unit diagonal."""
    size = np.sqrt(np.diag(gram))
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    values, vectors = eigen(scale[:, None] * gram * scale)
    kept = values > rank_tolerance * values[-1]
    if not kept.any():
        raise InputError("The features are zero on all of the data: there is nothing to solve for.")
    return scale[:, None] * vectors[:, kept] / np.sqrt(values[kept])


def solve(estimator: LinearEstimator, moments: Moments) -> Solution:
    """The closed-form saddle point of an estimator with linear functions; see `ClosedForm` for its options."""
    return ClosedForm().solve(estimator, moments)
