"""Fitted Q evaluation with a network: regression of Q(s,a) on r + γV(s') with V from a slowly following copy.

At discount 1 the regression is on r − ρ + V(s'), with ρ learned beside Q: the differential value, up to a constant.

References:
    Le, Voloshin and Yue, Batch Policy Learning under Constraints, ICML 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from gradientdice.functions.mlp import MLP
from gradientdice.solvers.stochastic.network import Layers, apply, init_layers
from gradientdice.solvers.stochastic.network_source import NetworkSource


@dataclass(frozen=True)
class FittedQ:
    """How a Q-network is trained.

    Attributes:
        steps: the number of updates.
        learning_rate: Adam's, which falls to 0 along half a cosine.
        batch_size: transitions an update.
        follow_rate: how fast the copy follows that gives V(s').
    """

    steps: int = 10_000
    learning_rate: float = 1e-3
    batch_size: int = 256
    follow_rate: float = 0.01

    def fit(self, functions: MLP, data: NetworkSource, discount: float, seeds: np.ndarray) -> tuple[Layers, np.ndarray]:
        """(runs, …) networks, one a seed, in one program, and the ρ that each learned (0 below discount 1)."""
        together = jax.default_backend() != "cpu"
        layers, value = _fit(self, functions, data, jnp.asarray(discount), jnp.asarray(seeds), discount == 1, together)
        return jax.tree.map(np.asarray, layers), np.asarray(value)


@partial(jax.jit, static_argnames=("solver", "functions", "average_reward", "together"))
def _fit(
    solver: FittedQ,
    functions: MLP,
    data: NetworkSource,
    discount: Any,
    seeds: Any,
    average_reward: bool,
    together: bool,
) -> tuple[Layers, Any]:
    sizes = (data.current.shape[-1], *functions.hidden, 1)
    optimizer = optax.adam(optax.cosine_decay_schedule(solver.learning_rate, solver.steps))
    # Q is of the size of a reward times the horizon; the network's outputs are of size 1.
    mean = jnp.sum(data.weights * data.rewards)
    spread = jnp.sqrt(jnp.sum(data.weights * (data.rewards - mean) ** 2)) + 1e-8
    horizon = 1.0 if average_reward else 1 / (1 - discount)
    level = 0.0 if average_reward else mean * horizon

    def value(layers: Layers, inputs: Any) -> Any:
        return level + spread * jnp.sqrt(horizon) * apply(layers, inputs)

    def one(seed: Any) -> tuple[Layers, Any]:
        key = jax.random.key(seed)
        layers = init_layers(jax.random.fold_in(key, 0), sizes, functions.output_scale, 0.0)
        params = (layers, jnp.asarray(mean if average_reward else 0.0))

        def step(carry: tuple[Any, ...], time: Any) -> tuple[tuple[Any, ...], None]:
            params, copy, state = carry
            batch = data.batch(jax.random.fold_in(key, time + 1), solver.batch_size)
            following = jnp.sum(value(copy, batch.following) * batch.following_weights, axis=1)
            if data.ended is not None:
                following = jnp.where(data.ended[batch.row], 0.0, following)

            def loss(params: tuple[Layers, Any]) -> Any:
                layers, rho = params
                target = data.rewards[batch.row] + discount * following
                error = target - (rho if average_reward else 0.0) - value(layers, batch.current)
                return 0.5 * jnp.mean(error**2) / spread**2

            move, state = optimizer.update(jax.grad(loss)(params), state)
            params = jax.tree.map(jnp.add, params, move)
            share = solver.follow_rate
            copy = jax.tree.map(lambda old, new: (1 - share) * old + share * new, copy, params[0])
            return (params, copy, state), None

        (params, _, _), _ = lax.scan(step, (params, layers, optimizer.init(params)), jnp.arange(solver.steps))
        layers, rho = params
        # The scaling becomes part of the last layer, so that the network by itself gives Q.
        weight, bias = layers[-1]
        factor = spread * jnp.sqrt(horizon)
        return [*layers[:-1], (factor * weight, factor * bias + level)], rho

    return jax.vmap(one)(seeds) if together else lax.map(one, seeds)
