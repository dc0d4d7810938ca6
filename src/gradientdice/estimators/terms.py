"""What every estimator's objective is a function of, and the form its linear system takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float


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
    """How the value E[τr] answers to the data, in the same basis as the parameters; the letters are q, p, λη, λvᵀq.

    Attributes:
        ratio: q, with which a perturbation of the ratio's equations reaches the value.
        flow: κ, what is left of the flow equations: 0 where the ratio solves them exactly.
        critic: p, which is the matching Q-function: f's place in the value's own system.
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
    """min ‖matrix·w̄ − target‖², subject to constraint·w̄ = 1 if there is a constraint."""

    matrix: Float[np.ndarray, "m r"]
    target: Float[np.ndarray, " m"]
    constraint: Float[np.ndarray, " r"] | None = None
