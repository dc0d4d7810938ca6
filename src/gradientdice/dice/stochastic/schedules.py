"""Learning rates over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gradientdice.base.errors import require_number


@dataclass(frozen=True)
class Constant:
    """α_t = rate."""

    rate: float

    def __post_init__(self) -> None:
        require_number("rate", self.rate, low=0, open_low=True)

    def at(self, step: Any) -> Any:
        """α_t."""
        return self.rate


@dataclass(frozen=True)
class RobbinsMonro:
    """α_t = rate / (1 + t/decay_steps)^power; with ½ < power ≤ 1, Σα_t = ∞ and Σα_t² < ∞.

    Attributes:
        rate: α_0.
        decay_steps: how many steps the rate stays near α_0.
        power: the rate of decay.
    """

    rate: float
    decay_steps: float = 1000.0
    power: float = 0.75

    def __post_init__(self) -> None:
        require_number("rate", self.rate, low=0, open_low=True)
        require_number("decay_steps", self.decay_steps, low=0, open_low=True)
        require_number("power", self.power, low=0.5, high=1, open_low=True)

    def at(self, step: Any) -> Any:
        """α_t."""
        return self.rate * (1 + step / self.decay_steps) ** (-self.power)


@dataclass(frozen=True)
class Cosine:
    """From rate to 0 along half a cosine, α_t = rate · ½(1 + cos(π t/steps)).

    Attributes:
        rate: α_0.
        steps: when it ends.
    """

    rate: float
    steps: float

    def __post_init__(self) -> None:
        require_number("rate", self.rate, low=0, open_low=True)
        require_number("steps", self.steps, low=1)

    def at(self, step: Any) -> Any:
        """α_t."""
        import jax.numpy as jnp

        return self.rate * 0.5 * (1 + jnp.cos(jnp.pi * jnp.minimum(step / self.steps, 1.0)))


Schedule = Constant | RobbinsMonro | Cosine


def as_schedule(learning_rate: float | Schedule) -> Schedule:
    """A plain number stands for a constant rate."""
    return learning_rate if isinstance(learning_rate, (Constant, RobbinsMonro, Cosine)) else Constant(learning_rate)
