"""A multilayer perceptron as plain functions of a list of layers."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Layers = list[tuple[Any, Any]]


def init_layers(key: jax.Array, sizes: tuple[int, ...], output_scale: float, start: float) -> Layers:
    """Weights and biases from U(±1/√inputs), as PyTorch draws them; the last bias is moved to where outputs start."""
    layers = []
    for number, (inputs, outputs) in enumerate(zip(sizes[:-1], sizes[1:], strict=True)):
        bound = 1 / math.sqrt(inputs)
        weight_key, bias_key = jax.random.split(jax.random.fold_in(key, number))
        weight = jax.random.uniform(weight_key, (inputs, outputs), minval=-bound, maxval=bound)
        bias = jax.random.uniform(bias_key, (outputs,), minval=-bound, maxval=bound)
        layers.append((weight, bias))
    weight, bias = layers[-1]
    layers[-1] = (output_scale * weight, output_scale * bias + start)
    return layers


def apply(layers: Layers, inputs: Any) -> Any:
    """(…, d) -> (…,)."""
    values = inputs
    for weight, bias in layers[:-1]:
        values = jax.nn.relu(jnp.matmul(values, weight, precision="highest") + bias)
    weight, bias = layers[-1]
    return (jnp.matmul(values, weight, precision="highest") + bias)[..., 0]


def predict(layers: Layers, inputs: np.ndarray) -> np.ndarray:
    """A network's outputs in NumPy, a chunk of rows at a time: (n, d) -> (n,)."""
    outputs = np.empty(len(inputs))
    for start in range(0, len(inputs), 65_536):
        values = inputs[start : start + 65_536]
        for weight, bias in layers[:-1]:
            values = np.maximum(values @ np.asarray(weight) + np.asarray(bias), 0)
        weight, bias = layers[-1]
        outputs[start : start + 65_536] = (values @ np.asarray(weight) + np.asarray(bias))[:, 0]
    return outputs
