"""The closed form: whiten the features, drop the directions the data do not show, solve least squares in float64.

A ridge on the raw system is badly biased for rich features. Whitening with a rank cut-off is not: it solves
the same problem with ξ = 0 in the subspace that the data determine. Features are first scaled to unit mean
square, so that a table with rarely logged pairs loses none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from gradientdice.errors import InputError, require_finite, require_number
from gradientdice.estimators import Estimator
from gradientdice.estimators.terms import Adjoint, LeastSquares, WhitenedMoments
from gradientdice.moments import Moments
from gradientdice.solvers.least_squares import FactoredLeastSquares
from gradientdice.solvers.solution import Solution


@runtime_checkable
class LinearEstimator(Protocol):
    """An estimator whose saddle point, with linear functions, is the solution of a least-squares problem."""

    @property
    def discount(self) -> float:
        """γ."""
        ...

    def least_squares(self, m: WhitenedMoments) -> LeastSquares:
        """The problem for the ratio's parameters."""
        ...

    def critic(self, m: WhitenedMoments, ratio_params: np.ndarray) -> tuple[np.ndarray, float]:
        """The critic's parameters and the norm multiplier that go with them."""
        ...

    def adjoint(
        self,
        m: WhitenedMoments,
        inverse: Callable[[np.ndarray], np.ndarray],
        reward: np.ndarray,
        critic: np.ndarray,
        norm_multiplier: float,
    ) -> Adjoint:
        """How the value answers to the data."""
        ...


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A closed-form solution with what inference needs.

    Attributes:
        discount: γ.
        moments: as used at this discount: at 1, with restarts in place of the absorbing state.
        solution: the saddle point.
        adjoint: q, p and the norm's two multipliers, in the features' basis.
    """

    discount: float
    moments: Moments
    solution: Solution
    adjoint: Adjoint

    @property
    def mean_ratio(self) -> float:
        """E[τ], the absorbing state included: 1 if all is well."""
        return float(self.solution.ratio_params @ self.moments.mean)

    @property
    def value(self) -> float:
        """ρ̂ = E[τ r]."""
        return float(self.solution.ratio_params @ self.moments.reward)


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
        return self.fit(self.require_linear(estimator), moments).solution

    @staticmethod
    def require_linear(estimator: Estimator) -> LinearEstimator:
        """The estimator itself, or an error if it has no closed form."""
        if not isinstance(estimator, LinearEstimator):  # pyright: ignore[reportGeneralTypeIssues]
            raise InputError(
                f"{type(estimator).__name__} has no closed form, since its ratio is a nonlinear function of its "
                "parameters: use PrimalDual, or GradientDICE or DualDICE(power=2) with ClosedForm."
            )
        return estimator

    def fit(self, estimator: LinearEstimator, moments: Moments) -> LinearFit:
        """The saddle point together with the value and how it answers to the data."""
        return self.fit_each([estimator], moments)[0]

    def fit_each(self, estimators: Sequence[LinearEstimator], moments: Moments) -> list[LinearFit]:
        """A fit for each estimator; those with the same moments share the basis in which C = I."""
        fits, last, basis = [], None, np.zeros((0, 0))
        for estimator in estimators:
            used = moments.for_discount(estimator.discount)
            if used is not last:
                for name in ("gram", "next_gram", "mean", "reward"):
                    require_finite(f"moments.{name}", getattr(used, name))
                last, basis = used, self._basis(used)
            fits.append(self._fit(estimator, used, basis))
        return fits

    def _fit(self, estimator: LinearEstimator, moments: Moments, basis: np.ndarray) -> LinearFit:
        discount = estimator.discount
        whitened = WhitenedMoments(
            basis,
            basis.T @ moments.bellman(discount) @ basis,
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

    def _basis(self, moments: Moments) -> np.ndarray:
        return whitening(moments.gram, self.rank_tolerance)


def whitening(gram: Float[np.ndarray, "K K"], rank_tolerance: float) -> Float[np.ndarray, "K r"]:
    """T with TᵀCT = I on the directions that the data show."""
    size = np.sqrt(np.diag(gram))
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    values, vectors = np.linalg.eigh(scale[:, None] * gram * scale)
    kept = values > rank_tolerance * values[-1]
    if not kept.any():
        raise InputError("The features are zero on all of the data: there is nothing to solve for.")
    return scale[:, None] * vectors[:, kept] / np.sqrt(values[kept])


def solve(estimator: Estimator, moments: Moments) -> Solution:
    """The closed-form saddle point of an estimator with linear functions; see `ClosedForm` for its options."""
    return ClosedForm().solve(estimator, moments)
