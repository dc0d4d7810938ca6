"""What every solver returns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from gradientdice.dice.saddle import Adjoint
from gradientdice.dice.status import Status
from gradientdice.problem.moments import Moments


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
        """E[τ], the absorbing state included: 1 if all is well."""
        return float(self.solution.ratio_params @ self.moments.mean)

    @property
    def value(self) -> float:
        """ρ̂ = E[τ r]."""
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
        note: what the reader should know of a fit without influence values.
    """

    value: float
    mean_ratio: float
    solution: Solution
    ratio: Float[np.ndarray, " n"] | None = None
    linear: LinearFit | None = None
    note: str = ""
