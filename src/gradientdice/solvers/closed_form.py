"""The closed form: whiten the features, drop the directions the data do not show, solve least squares in float64.

A ridge on the raw system is badly biased for rich features. Whitening with a rank cut-off is not: it solves
the same problem with ξ = 0 in the subspace that the data determine. Features are first scaled to unit mean
square, so that a table with rarely logged pairs loses none of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import scipy.linalg

from gradientdice.errors import InputError, require_finite, require_number
from gradientdice.estimators import Estimator
from gradientdice.estimators.terms import LeastSquares, WhitenedMoments
from gradientdice.moments import Moments
from gradientdice.solvers.solution import Solution
from gradientdice.solvers.status import Status


@runtime_checkable
class LinearEstimator(Protocol):
    """An estimator whose saddle point, with linear functions, is the solution of a least-squares problem."""

    discount: float

    def least_squares(self, m: WhitenedMoments) -> LeastSquares:
        """The problem for the ratio's parameters."""
        ...

    def critic(self, m: WhitenedMoments, ratio_params: np.ndarray) -> tuple[np.ndarray, float]:
        """The critic's parameters and the norm multiplier that go with them."""
        ...


@dataclass(frozen=True)
class ClosedForm:
    """The exact solver for linear and tabular functions: no learning rate, no iterations.

    Attributes:
        rank_tolerance: directions whose share of the scaled features' second moment is below this fraction
            of the largest are dropped.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp = gd.mdp.single_state()
        >>> uniform = np.array([[0.5, 0.5]])
        >>> moments = gd.Moments.exact(mdp, uniform, np.eye(2), uniform)
        >>> gd.ClosedForm().solve(gd.GradientDICE(discount=1.0), moments).ratio_params.round(12)
        array([1., 1.])
    """

    rank_tolerance: float = 1e-10

    def __post_init__(self) -> None:
        require_number("rank_tolerance", self.rank_tolerance, low=0, high=1)

    def solve(self, estimator: Estimator, moments: Moments) -> Solution:
        """The estimator's saddle point for these moments.

        Raises:
            InputError: if the estimator has no closed form, or the moments have a NaN or lack initial states.
        """
        if not isinstance(estimator, LinearEstimator):  # pyright: ignore[reportGeneralTypeIssues]
            raise InputError(
                f"{type(estimator).__name__} has no closed form, since its ratio is a nonlinear function of its "
                "parameters: use PrimalDual, or GradientDICE or DualDICE(power=2) with ClosedForm."
            )
        moments = moments.for_discount(estimator.discount)
        for name in ("gram", "next_gram", "mean"):
            require_finite(f"moments.{name}", getattr(moments, name))
        whitened = self._whiten(moments, estimator.discount)
        problem = estimator.least_squares(whitened)
        ratio, singular_values = _solve(problem)
        critic, norm_multiplier = estimator.critic(whitened, ratio)
        # The squared ratio is the condition number of the normal equations, the paper's A_*.
        condition = (singular_values[0] / singular_values[-1]) ** 2 if singular_values[-1] > 0 else np.inf
        stats = {
            "condition_number": float(condition),
            "rank": whitened.basis.shape[1],
            "num_features": moments.num_features,
        }
        return Solution(
            whitened.basis @ ratio, whitened.basis @ critic, norm_multiplier, _status(singular_values), stats
        )

    def _whiten(self, moments: Moments, discount: float) -> WhitenedMoments:
        size = np.sqrt(np.diag(moments.gram))
        scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
        values, vectors = np.linalg.eigh(scale[:, None] * moments.gram * scale)
        kept = values > self.rank_tolerance * values[-1]
        if not kept.any():
            raise InputError("The features are zero on all of the data: there is nothing to solve for.")
        basis = scale[:, None] * vectors[:, kept] / np.sqrt(values[kept])
        return WhitenedMoments(
            basis,
            basis.T @ moments.bellman(discount) @ basis,
            basis.T @ moments.mean,
            basis.T @ moments.initial_for(discount),
        )


def solve(estimator: Estimator, moments: Moments) -> Solution:
    """The closed-form saddle point of an estimator with linear functions; see `ClosedForm` for its options."""
    return ClosedForm().solve(estimator, moments)


def _solve(problem: LeastSquares) -> tuple[np.ndarray, np.ndarray]:
    """The least-squares solution (of least norm if there are several) and the system's singular values."""
    matrix, target = problem.matrix, problem.target
    offset, free = np.zeros(matrix.shape[1]), None
    if problem.constraint is not None:
        # Any solution is a particular point of the constraint plus a free move inside its null space.
        length = problem.constraint @ problem.constraint
        if length == 0:
            return offset, np.zeros(1)
        offset = problem.constraint / length
        free = scipy.linalg.null_space(problem.constraint[None])
        matrix, target = matrix @ free, target - matrix @ offset
    if matrix.shape[1] == 0:
        return offset, np.ones(1)
    left, singular, right = np.linalg.svd(matrix, full_matrices=False)
    usable = singular > _singular_cutoff(singular)
    inverse = np.divide(1.0, singular, out=np.zeros_like(singular), where=usable)
    move = right.T @ (inverse * (left.T @ target))
    return offset + (move if free is None else free @ move), singular


def _singular_cutoff(singular: np.ndarray) -> float:
    return float(singular[0]) * len(singular) * np.finfo(np.float64).eps


def _status(singular: np.ndarray) -> Status:
    if singular[-1] <= _singular_cutoff(singular):
        return Status.SINGULAR
    # Beyond 1e7 the normal equations' condition number passes 1e14, and half of the digits are gone.
    return Status.ILL_CONDITIONED if singular[0] > 1e7 * singular[-1] else Status.OK
