"""Fitted Q evaluation with a network: regression of Q(s,a) on r + γV(s') with V from a slowly following copy.

At discount 1 the regression is on r − ρ + V(s'), with ρ learned beside Q: the differential value, up to a constant.

References:
    Le, Voloshin and Yue, Batch Policy Learning under Constraints, ICML 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from gradientdice.compiling import quick_options
from gradientdice.functions.mlp import MLP
from gradientdice.progress import working
from gradientdice.solvers.stochastic.devices import advances_together, workers
from gradientdice.solvers.stochastic.network import Layers, apply, init_layers
from gradientdice.solvers.stochastic.network_source import NetworkSource
from gradientdice.solvers.stochastic.pieces import scan_steps
from gradientdice.solvers.stochastic.programs import PROGRAMS


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

    def fit(
        self,
        functions: MLP,
        logs: Sequence[NetworkSource],
        discount: float,
        seeds: np.ndarray,
        *,
        progress: bool | None = None,
    ) -> list[tuple[Layers, np.ndarray]]:
        """For each of some logs of one shape, (runs, …) networks, one a seed, and each one's ρ (0 below discount 1).

        They are trained on all cores; on an accelerator the networks of a log advance together.
        """
        together = advances_together()
        batches = [seeds] if together else np.split(seeds, len(seeds))
        jobs = [(log, batch) for log in logs for batch in batches]
        with working("training Q", len(jobs), progress) as advance, ThreadPoolExecutor(workers(None).threads) as pool:

            def work(job: tuple[NetworkSource, np.ndarray]) -> tuple[Layers, Any]:
                log, batch = job
                arguments = log, jnp.asarray(discount), jnp.asarray(batch)
                build = partial(_fit, self, functions, discount == 1, together)
                options: Any = quick_options()
                program = PROGRAMS.get(
                    ("fitted Q", self, functions, discount == 1, together),
                    arguments,
                    lambda: jax.jit(build, compiler_options=options),
                )
                found = jax.tree.map(np.asarray, program(*arguments))
                advance(1)
                return found

            done = list(pool.map(work, jobs))
        size = len(batches)
        own = [done[first : first + size] for first in range(0, len(done), size)]
        return [jax.tree.map(lambda *parts: np.concatenate(parts), *parts) for parts in own]


def member_seeds(seed: int, members: int) -> np.ndarray:
    """Seeds of an ensemble's networks; any seed of a problem will do."""
    return np.array([(1000 * seed + member) % 2**32 for member in range(members)], dtype=np.uint32)


def _fit(
    solver: FittedQ,
    functions: MLP,
    average_reward: bool,
    together: bool,
    data: NetworkSource,
    discount: Any,
    seeds: Any,
) -> tuple[Layers, Any]:
    sizes = (data.current.shape[-1], *functions.hidden, 1)
    optimizer = optax.adam(optax.cosine_decay_schedule(solver.learning_rate, solver.steps))
    # Q is of the size of a reward times the horizon; the network's outputs are of size 1.
    mean = jnp.sum(data.weights * data.rewards)
    spread = jnp.sqrt(jnp.sum(data.weights * (data.rewards - mean) ** 2)) + 1e-8
    horizon = 1.0 if average_reward else 1 / (1 - discount)
    level = 0.0 if average_reward else mean * horizon
    piece = data.at_once(solver.steps)

    def value(layers: Layers, inputs: Any) -> Any:
        return level + spread * jnp.sqrt(horizon) * apply(layers, inputs)

    def one(seed: Any) -> tuple[Layers, Any]:
        key = jax.random.key(seed)
        layers = init_layers(jax.random.fold_in(key, 0), sizes, functions.output_scale, 0.0)
        params = (layers, jnp.asarray(mean if average_reward else 0.0))

        def draw(start: Any) -> Any:
            keys = jax.vmap(lambda step: jax.random.fold_in(key, start + step + 1))(jnp.arange(piece))
            return jax.vmap(lambda own: data.numbers(own, solver.batch_size))(keys)

        def step(carry: tuple[Any, ...], inputs: tuple[Any, Any]) -> tuple[tuple[Any, ...], None]:
            params, copy, state = carry
            batch = data.batch(inputs[1])
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

        carry = (params, layers, optimizer.init(params))
        params, _, _ = scan_steps(step, carry, draw, 0, (solver.steps, piece))
        layers, rho = params
        # The scaling becomes part of the last layer, so that the network by itself gives Q.
        weight, bias = layers[-1]
        factor = spread * jnp.sqrt(horizon)
        return [*layers[:-1], (factor * weight, factor * bias + level)], rho

    return jax.vmap(one)(seeds) if together else lax.map(one, seeds)
