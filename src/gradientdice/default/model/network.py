"""The networks of a learned model: two hidden layers with layer normalisation, beside a part in closed form,

    outputs(x) = layers(x)·W + (x, x², 1)·B.

B is a least-squares fit that is then kept, so that an untrained network already is that fit: linear systems and costs
that are sums of squares are learned exactly.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# A ridge in units of the inputs' variance: enough for inputs that are copies of each other.
BASE_RIDGE = 1e-6
NORM_FLOOR = 1e-5


class HiddenLayer(eqx.Module):
    """A linear map, layer normalisation and a smooth rectifier."""

    weight: Float[Array | np.ndarray, "*j a b"]
    bias: Float[Array | np.ndarray, "*j b"]
    gain: Float[Array | np.ndarray, "*j b"]
    shift: Float[Array | np.ndarray, "*j b"]

    def __call__(self, inputs: Float[Array, "n a"]) -> Float[Array, "n b"]:
        """The layer's outputs."""
        raw = inputs @ self.weight + self.bias
        centred = raw - raw.mean(axis=-1, keepdims=True)
        spread = jnp.mean(centred**2, axis=-1, keepdims=True)
        return jax.nn.silu(centred * jax.lax.rsqrt(spread + NORM_FLOOR) * self.gain + self.shift)


class Network(eqx.Module):
    """Two hidden layers and a part in closed form.

    Attributes:
        base: (…, 2 inputs + 1, outputs) of the inputs, their squares and a constant; it is not trained.
        hidden: the hidden layers.
        weight: of the output layer, 0 at first.
    """

    base: Float[Array | np.ndarray, "*j m k"]
    hidden: tuple[HiddenLayer, ...]
    weight: Float[Array | np.ndarray, "*j b k"]

    def features(self, inputs: Float[Array, "n d"]) -> Float[Array, "n m"]:
        """What the outputs are linear in: the last hidden layer, the inputs, their squares and a constant."""
        layer = inputs
        for hidden in self.hidden:
            layer = hidden(layer)
        return jnp.concatenate([layer, inputs, inputs**2, jnp.ones((len(inputs), 1))], axis=1)

    def __call__(self, inputs: Float[Array, "n d"]) -> Float[Array, "n k"]:
        """The outputs for each row."""
        return self.of_features(self.features(inputs))

    def of_features(self, features: Float[Array, "n m"]) -> Float[Array, "n k"]:
        """The outputs for features of each row."""
        return features @ jnp.concatenate([self.weight, jax.lax.stop_gradient(self.base)])


def first_networks(base: Float[np.ndarray, "j m k"], width: int, rng: np.random.Generator) -> Network:
    """Networks, stacked, that are their closed-form part. Drawn by NumPy: JAX would compile programs for it."""
    count, rows, outputs = base.shape

    def layer(before: int) -> HiddenLayer:
        weight = rng.normal(size=(count, before, width)) / np.sqrt(before)
        zeros = np.zeros((count, width), dtype=np.float32)
        return HiddenLayer(weight.astype(np.float32), zeros, np.ones_like(zeros), zeros)

    hidden = (layer((rows - 1) // 2), layer(width))
    weight = np.zeros((count, width, outputs), dtype=np.float32)
    return Network(base.astype(np.float32), hidden, weight)


def closed_form_base(
    inputs: Float[np.ndarray, "n d"], targets: Float[np.ndarray, "n k"], weights: Float[np.ndarray, "n k"]
) -> Float[np.ndarray, "m k"]:
    """Least squares on the inputs, their squares and a constant, each target with row weights of its own."""
    x = np.column_stack([inputs, inputs**2, np.ones(len(inputs))]).astype(np.float64)
    solved = np.zeros((x.shape[1], targets.shape[1]))
    ridge = np.full(x.shape[1], BASE_RIDGE)
    ridge[-1] = 0.0
    # Most targets share their weights: one system for each kind.
    kinds, kind = weights[:, :1], np.zeros(weights.shape[1], dtype=np.int64)
    if (weights != kinds).any():
        kinds, kind = np.unique(weights, axis=1, return_inverse=True)
    for number, weight in enumerate(kinds.T.astype(np.float64)):
        if weight.any():
            columns = kind.ravel() == number
            scaled = x * (weight / weight.sum())[:, None]
            solved[:, columns] = np.linalg.solve(scaled.T @ x + np.diag(ridge), scaled.T @ targets[:, columns])
    return solved
