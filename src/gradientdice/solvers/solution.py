"""What every solver returns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from gradientdice.solvers.status import Status


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
    critic_params: Float[np.ndarray, " K"]
    norm_multiplier: float
    status: Status
    stats: dict[str, float] = field(default_factory=dict)
    curve: Curve | None = None
