"""The features of kernels as functions of standardised inputs: in NumPy, and the same in JAX for a device."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from gradientdice.functions.cosine import cosine_of_turns


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    """A constant, and √(2/M) cos(2π(zᵀω + β)) for M frequencies ω and phases β.

    Attributes:
        frequencies: ω, in turns.
        phases: β, in turns.
    """

    frequencies: Float[np.ndarray, "d M"]
    phases: Float[np.ndarray, " M"]

    def __call__(self, inputs: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n features"]:
        """The features of some inputs."""
        result = np.empty((len(inputs), self.size))
        result[:, 0] = 1.0
        waves = result[:, 1:]
        np.matmul(inputs, self.frequencies, out=waves)
        waves += self.phases
        cosine_of_turns(waves, math.sqrt(2 / len(self.phases)))
        return result

    @property
    def size(self) -> int:
        """How many they are."""
        return len(self.phases) + 1

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What `traced` needs beside the inputs."""
        return self.frequencies, self.phases

    @staticmethod
    def traced(inputs: Any, frequencies: Any, phases: Any) -> Any:
        """The same in JAX."""
        import jax.numpy as jnp

        turns = jnp.matmul(inputs, frequencies, precision="highest") + phases
        waves = jnp.cos(2 * math.pi * (turns - jnp.round(turns))) * math.sqrt(2 / len(phases))
        return jnp.concatenate([jnp.ones((len(inputs), 1)), waves], axis=1)


@dataclass(frozen=True, eq=False)
class LandmarkFeatures:
    """A constant, and exp(−factor ‖z − z_j‖²) for landmarks z_j.

    Attributes:
        landmarks: z_j.
        factor: 1 / 2h², with h the kernel's bandwidth.
    """

    landmarks: Float[np.ndarray, "M d"]
    factor: float

    def __call__(self, inputs: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n features"]:
        """The features of some inputs."""
        marks = self.landmarks
        squares = np.sum(inputs**2, axis=1)[:, None] + np.sum(marks**2, axis=1) - 2 * inputs @ marks.T
        return np.column_stack([np.ones(len(inputs)), np.exp(-self.factor * np.maximum(squares, 0.0))])

    @property
    def size(self) -> int:
        """How many they are."""
        return len(self.landmarks) + 1

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What `traced` needs beside the inputs."""
        return self.landmarks, np.asarray(self.factor)

    @staticmethod
    def traced(inputs: Any, landmarks: Any, factor: Any) -> Any:
        """The same in JAX."""
        import jax.numpy as jnp

        products = jnp.matmul(inputs, landmarks.T, precision="highest")
        squares = jnp.sum(inputs**2, axis=1)[:, None] + jnp.sum(landmarks**2, axis=1) - 2 * products
        return jnp.concatenate([jnp.ones((len(inputs), 1)), jnp.exp(-factor * jnp.maximum(squares, 0.0))], axis=1)
