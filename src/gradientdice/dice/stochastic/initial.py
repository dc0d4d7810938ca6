"""Where a stochastic learner starts. GenDICE's result moves a lot with it, so results name it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax

from gradientdice.base.errors import InputError, require_count, require_number


@dataclass(frozen=True)
class UniformInit:
    """Weights from U(−1/√fan_in, 1/√fan_in), as PyTorch draws those of a linear layer.

    Attributes:
        fan_in: how many inputs the layer has; None is the number of features.
    """

    fan_in: int | None = None

    def __post_init__(self) -> None:
        if self.fan_in is not None:
            require_count("fan_in", self.fan_in)

    def draw(self, key: jax.Array, num_features: int) -> tuple[jax.Array, jax.Array]:
        """The ratio's and the critic's first parameters."""
        bound = 1 / math.sqrt(self.fan_in or num_features)
        both = jax.random.uniform(key, (2, num_features), minval=-bound, maxval=bound)
        return both[0], both[1]


@dataclass(frozen=True)
class ConstantInit:
    """All of the ratio's weights at one number, the critic's at another."""

    ratio: float = 1.0
    critic: float = 0.0

    def __post_init__(self) -> None:
        require_number("ratio", self.ratio)
        require_number("critic", self.critic)

    def draw(self, key: jax.Array, num_features: int) -> tuple[jax.Array, jax.Array]:
        """The ratio's and the critic's first parameters."""
        return jax.numpy.full(num_features, self.ratio), jax.numpy.full(num_features, self.critic)


Init = UniformInit | ConstantInit


def require_init(init: object) -> None:
    """An error unless this says where the weights start."""
    if not isinstance(init, (UniformInit, ConstantInit)):
        raise InputError(f"init must be UniformInit(…) or ConstantInit(…), not {init!r:.60}.")
