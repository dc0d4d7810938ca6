"""Features of kernels as functions of standardised inputs, in NumPy, and in JAX for a device."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

# As many entries at a time as stay in a core's own cache.
BLOCK = 1 << 14
# The series of −sin(2πu) / u in powers of u², the highest first.
SERIES = [-((-1) ** k) * (2 * math.pi) ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(9, -1, -1)]


def cosine_of_turns(turns: Float[np.ndarray, "n m"], scale: float) -> None:
    """Replace y by scale · cos(2πy), in place: NumPy's own float64 cosine takes ten times as long.

    With u = |y − round(y)| − ¼ the cosine is −sin(2πu), |2πu| ≤ π/2, where ten terms of the sine's series are exact to
    the last digits of float64.

    Args:
        turns: y, of which only whole turns more or less do not matter.
        scale: of the result.
    """
    rows = max(1, BLOCK // max(1, turns.shape[1]))
    series = [scale * term for term in SERIES]
    for start in range(0, len(turns), rows):
        part = turns[start : start + rows]
        u = part - np.rint(part)
        np.abs(u, out=u)
        u -= 0.25
        square = u * u
        result = np.full_like(u, series[0])
        for term in series[1:]:
            result *= square
            result += term
        np.multiply(result, u, out=part)


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    """Random Fourier features: a constant, and √(2/M) cos(2π(zᵀω + β)) for M frequencies ω and phases β.

    Attributes:
        frequencies: ω, in turns.
        phases: β, in turns.
    """

    frequencies: Float[np.ndarray, "d M"]
    phases: Float[np.ndarray, " M"]

    def __call__(self, inputs: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n features"]:
        """The Fourier features of some inputs."""
        result = np.empty((len(inputs), self.size))
        result[:, 0] = 1.0
        waves = result[:, 1:]
        np.matmul(inputs, self.frequencies, out=waves)
        waves += self.phases
        cosine_of_turns(waves, math.sqrt(2 / len(self.phases)))
        return result

    @property
    def size(self) -> int:
        """The number of Fourier features."""
        return len(self.phases) + 1

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """Arrays that `traced` needs besides the inputs."""
        return self.frequencies, self.phases

    @staticmethod
    def traced(inputs: Any, frequencies: Any, phases: Any) -> Any:
        """The Fourier features of some inputs, in JAX."""
        import jax.numpy as jnp

        turns = jnp.matmul(inputs, frequencies, precision="highest") + phases
        waves = jnp.cos(2 * math.pi * (turns - jnp.round(turns))) * math.sqrt(2 / len(phases))
        return jnp.concatenate([jnp.ones((len(inputs), 1)), waves], axis=1)


@dataclass(frozen=True, eq=False)
class LandmarkFeatures:
    """Features of landmarks: a constant, and exp(−factor ‖z − z_j‖²) for landmarks z_j.

    Attributes:
        landmarks: z_j.
        factor: 1 / 2h², with h the kernel's bandwidth.
    """

    landmarks: Float[np.ndarray, "M d"]
    factor: float

    def __call__(self, inputs: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n features"]:
        """The landmarks' features of some inputs."""
        marks = self.landmarks
        squares = np.sum(inputs**2, axis=1)[:, None] + np.sum(marks**2, axis=1) - 2 * inputs @ marks.T
        return np.column_stack([np.ones(len(inputs)), np.exp(-self.factor * np.maximum(squares, 0.0))])

    @property
    def size(self) -> int:
        """The number of landmarks' features."""
        return len(self.landmarks) + 1

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """Arrays that `traced` needs besides the inputs."""
        return self.landmarks, np.asarray(self.factor)

    @staticmethod
    def traced(inputs: Any, landmarks: Any, factor: Any) -> Any:
        """The landmarks' features of some inputs, in JAX."""
        import jax.numpy as jnp

        products = jnp.matmul(inputs, landmarks.T, precision="highest")
        squares = jnp.sum(inputs**2, axis=1)[:, None] + jnp.sum(landmarks**2, axis=1) - 2 * products
        return jnp.concatenate([jnp.ones((len(inputs), 1)), jnp.exp(-factor * jnp.maximum(squares, 0.0))], axis=1)
