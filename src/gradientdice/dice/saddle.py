"""Protocols between solvers and estimators: the objective, and the form that its linear system takes.

Solvers know estimators by these protocols alone, so that a class from anywhere that has the methods can be solved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    from gradientdice.dice.solution import Fit
    from gradientdice.problem.moments import Moments
    from gradientdice.problem.problem import Problem


class Terms(NamedTuple):
    """The values of the two functions at one transition, elementwise over any number of them.

    Attributes:
        ratio: τ(s,a).
        critic: f(s,a).
        next_critic: f(s',a'), or its expectation over a' ~ π.
        initial_critic: f(s0,a0), or its expectation over a0 ~ π.
        norm_multiplier: η.
    """

    ratio: Any
    critic: Any
    next_critic: Any
    initial_critic: Any
    norm_multiplier: Any


class WhitenedMoments(NamedTuple):
    """Moments in a basis in which C = I, so that w = basis · w̄.

    Attributes:
        basis: (K, r), r the rank kept.
        bellman: Ā = basisᵀ A basis.
        mean: v̄ = basisᵀ v.
        initial: (1−γ) b̄ = (1−γ) basisᵀ b.
    """

    basis: Float[np.ndarray, "K r"]
    bellman: Float[np.ndarray, "r r"]
    mean: Float[np.ndarray, " r"]
    initial: Float[np.ndarray, " r"]


class Adjoint(NamedTuple):
    """Sensitivity of E[τr] to the data, in the same basis as the parameters; the letters are q, p, λη, λvᵀq.

    Attributes:
        ratio: q, with which a perturbation of the ratio's equations reaches the value.
        flow: κ, what is left of the flow equations: 0 where the ratio solves them exactly.
        critic: p, which is the matching Q-function up to the constant λvᵀq/(1−γ).
        norm_force: λη, or the multiplier of a hard constraint E[τ] = 1.
        norm: λvᵀq, which at discount 1 is the value itself.
    """

    ratio: Any
    flow: Any
    critic: Any
    norm_force: float
    norm: float


@dataclass(frozen=True)
class LeastSquares:
    """The problem min ‖matrix·w̄ − target‖², subject to constraint·w̄ = 1 if there is a constraint."""

    matrix: Float[np.ndarray, "m r"]
    target: Float[np.ndarray, " m"]
    constraint: Float[np.ndarray, " r"] | None = None


@runtime_checkable
class SaddleObjective(Protocol):
    """An estimator that is the saddle point of an objective, which stochastic solvers differentiate.

    Attributes:
        ratio_minimises: whether the ratio's player minimises the objective.
    """

    ratio_minimises: ClassVar[bool]

    @property
    def discount(self) -> float:
        """γ."""
        ...

    @property
    def ridge(self) -> float:
        """ξ in ½ξ‖w‖²."""
        ...

    def ratio(self, raw: Any) -> Any:
        """The ratio from the function's output, by the estimator's positive map."""
        ...

    def objective(self, terms: Terms) -> Any:
        """The objective of one transition, without the ridge; linear in next_critic and in initial_critic."""
        ...


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
        """Sensitivity of the value to the data."""
        ...


@runtime_checkable
class QuadraticSaddle(Protocol):
    """A saddle objective that is quadratic in both players' parameters, as Algorithm 1 and its bounds need it."""

    @property
    def discount(self) -> float:
        """γ."""
        ...

    @property
    def norm_penalty(self) -> float:
        """λ."""
        ...

    @property
    def ridge(self) -> float:
        """ξ."""
        ...

    def coupling(self, moments: Moments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Matrices M, m and Q of L(w, y) = yᵀ(m + Mw) − ½yᵀQy + ½ξ‖w‖², y = [κ; η]."""
        ...


@runtime_checkable
class Solver(Protocol):
    """A finder of the saddle point of an estimator on a problem."""

    def fit(self, estimator: Any, problem: Problem) -> Fit:
        """The saddle point, its ratio and its value."""
        ...
