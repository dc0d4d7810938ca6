"""Answers of solvers: parameters, fits, learning curves, and a status.

A numerical failure is a status with causes and remedies, never a silent NaN.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from jaxtyping import Float, Int

from gradientdice.dice.saddle import Adjoint
from gradientdice.problem.moments import Moments


class Status(Enum):
    """The outcome of a solve. `status.ok` says whether the numbers can be used; `status.message` says why not."""

    OK = "The solve succeeded."
    ILL_CONDITIONED = (
        "The linear system is badly conditioned, so digits of the answer are lost. Causes: features that are nearly "
        "collinear, a policy far from the data, a discount near 1 with a slowly mixing chain. Remedies: fewer or "
        "better scaled features, a larger rank_tolerance, more data near the target policy."
    )
    SINGULAR = (
        "The linear system has no unique solution; the one of least norm is given. Causes: at discount 1, several "
        "closed classes or features without the ratio's direction; norm_penalty=0 without an intercept. Remedies: a "
        "discount below 1, norm_penalty > 0, an intercept, or a small ridge."
    )
    DIVERGED = (
        "The iterates left the range of finite numbers; the last finite ones are given. Causes: too large a learning "
        "rate, an objective that is not convex-concave (GenDICE), or one that grows faster than a square (DualDICE "
        "with power 1.5). Remedies: a smaller or decreasing learning rate, ProjectedPrimalDual, or ClosedForm, which "
        "has no learning rate."
    )
    OUTSIDE_BALL = (
        "The saddle point lies outside the given balls, so the iterates cannot reach it. Cause: too small a radius. "
        "Remedy: a larger radius, or none, in which case it is chosen from the closed form."
    )
    NOT_CONVERGED = (
        "The iteration had not come to rest when its steps were over; the last iterate is given. Causes: too few "
        "steps, a learning rate that is too small, or one so large that the noise of single steps stays in the answer; "
        "for FQE, a spectral radius of 1 or more, as happens off-policy when features are not a table. Remedies: more "
        "steps, larger batches, a decreasing learning rate, or what needs no steps: ClosedForm, or LSTDQ in place of "
        "FQE."
    )

    @property
    def ok(self) -> bool:
        """True if the numbers can be used as they are."""
        return self is Status.OK

    @property
    def message(self) -> str:
        """The failure, its causes and its remedies."""
        return self.value

    def __repr__(self) -> str:
        return f"Status.{self.name}"

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True, eq=False)
class Curve:
    """A learning curve: one recorded number every few steps; infinity once a run has diverged."""

    steps: Int[np.ndarray, " t"]
    values: Float[np.ndarray, " t"]
    name: str


@dataclass(frozen=True, eq=False)
class Solution:
    """The two functions' parameters and how they were found.

    Attributes:
        ratio_params: w; τ = x·w (through the estimator's positive map, if it has one).
        critic_params: κ; f = x·κ.
        norm_multiplier: η.
        status: how the solve ended.
        stats: figures of the solve: condition_number, rank, num_features; steps, diverged_at, ….
        curve: the learning curve of a stochastic solver, else None.
    """

    ratio_params: Float[np.ndarray, " K"]
    critic_params: Float[np.ndarray, " L"]
    norm_multiplier: float
    status: Status
    stats: dict[str, float] = field(default_factory=dict)
    curve: Curve | None = None


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
        """The mean ratio E[τ], the absorbing state included: 1 if all is well."""
        return float(self.solution.ratio_params @ self.moments.mean)

    @property
    def value(self) -> float:
        """The value ρ̂ = E[τ r]."""
        return float(self.solution.ratio_params @ self.moments.reward)


@dataclass(frozen=True, eq=False)
class Fit:
    """A saddle point on a problem.

    Attributes:
        value: E[τr].
        mean_ratio: E[τ], the absorbing state included.
        solution: the parameters and how they were found.
        ratio: (n,) τ at each row, a ratio to the rows alone; None if influence values, which need it too, give it.
        linear: the closed form behind it, from which influence values follow; None if there is none.
        note: for the reader of a fit without influence values.
    """

    value: float
    mean_ratio: float
    solution: Solution
    ratio: Float[np.ndarray, " n"] | None = None
    linear: LinearFit | None = None
    note: str = ""
