"""Fitted Q evaluation with a network: regression of Q(s,a) on r + γV(s') with V from a slowly following copy.

There is no discount 1: a differential value that follows itself has nothing that holds its level, and drifts off.
Callers train at a discount near 1, on a log whose ended episodes restart.

References:
    Le, Voloshin and Yue, Batch Policy Learning under Constraints, ICML 2019.
"""

from __future__ import annotations

import math
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

from gradientdice.base.compiling import PROGRAMS, quick_options
from gradientdice.base.devices import advances_together, workers
from gradientdice.base.progress import working
from gradientdice.dice.stochastic.functions import Layers, apply, init_layers
from gradientdice.dice.stochastic.sources import NetworkSource, scan_steps
from gradientdice.functions.mlp import MLP

# What is left of the first error after all steps is about exp(−(1−γ) rate · steps), with the rate at which the copy
# follows: it is as large as e⁻⁵ needs, up to the last.
EXPONENT, LARGEST_RATE = 5.0, 0.5


@dataclass(frozen=True)
class FittedQ:
    """Settings by which a Q-network is trained.

    Attributes:
        steps: the number of updates.
        learning_rate: Adam's, which falls to 0 along half a cosine.
        batch_size: transitions an update.
        least_rate: how fast the copy follows that gives V(s'), at least: see `rate`.
        bounded: whether V(s') is kept within what the rewards allow, so that it cannot diverge.
    """

    steps: int = 10_000
    learning_rate: float = 1e-3
    batch_size: int = 256
    least_rate: float = 0.01
    bounded: bool = False

    def rate(self, discount: float) -> float:
        """The rate at which the copy follows, so that the steps suffice for the horizon."""
        needed = EXPONENT / ((1 - discount) * self.steps)
        return max(self.least_rate, min(needed, LARGEST_RATE))

    def warning(self, discount: float) -> tuple[str, ...]:
        """A warning where the steps do not suffice for the horizon; else nothing."""
        exponent = (1 - discount) * self.rate(discount) * self.steps
        if exponent > EXPONENT - 0.01:
            return ()
        return (
            f"about {math.exp(-exponent):.0%} of the way from the log's mean reward to the value is missing in the "
            f"fitted Q: {self.steps:,} steps are too few for discount {discount:g}",
        )

    def fit(
        self,
        functions: MLP,
        logs: Sequence[NetworkSource],
        discount: float,
        seeds: np.ndarray,
        *,
        progress: bool | None = None,
    ) -> list[Layers]:
        """For each of some logs of one shape, (runs, …) networks, one a seed; the discount is below 1.

        They are trained on all cores; on an accelerator the networks of a log advance together.
        """
        together = advances_together()
        batches = [seeds] if together else np.split(seeds, len(seeds))
        jobs = [(log, batch) for log in logs for batch in batches]
        with working("training Q", len(jobs), progress) as advance, ThreadPoolExecutor(workers(None).threads) as pool:

            def work(job: tuple[NetworkSource, np.ndarray]) -> Layers:
                log, batch = job
                arguments = log, jnp.asarray(discount), jnp.asarray(batch)
                build = partial(_fit, self, functions, self.rate(discount), together)
                options: Any = quick_options()
                program = PROGRAMS.get(
                    ("fitted Q", self, functions, self.rate(discount), together),
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
    rate: float,
    together: bool,
    data: NetworkSource,
    discount: Any,
    seeds: Any,
) -> Layers:
    sizes = (data.current.shape[-1], *functions.hidden, 1)
    optimizer = optax.adam(optax.cosine_decay_schedule(solver.learning_rate, solver.steps))
    # Q is of the size of a reward times the horizon; the network's outputs are of size 1.
    mean = jnp.sum(data.weights * data.rewards)
    spread = jnp.sqrt(jnp.sum(data.weights * (data.rewards - mean) ** 2)) + 1e-8
    horizon = 1 / (1 - discount)
    level = mean * horizon
    # Those of the rows that count; after an end there is nothing.
    possible = jnp.where(data.weights > 0, data.rewards, mean)
    possible = possible if data.ended is None else jnp.append(possible, 0.0)
    least, most = possible.min() * horizon, possible.max() * horizon
    piece = data.at_once(solver.steps)

    def value(layers: Layers, inputs: Any) -> Any:
        return level + spread * jnp.sqrt(horizon) * apply(layers, inputs)

    def one(seed: Any) -> Layers:
        key = jax.random.key(seed)
        layers = init_layers(jax.random.fold_in(key, 0), sizes, functions.output_scale, 0.0)

        def draw(start: Any) -> Any:
            keys = jax.vmap(lambda step: jax.random.fold_in(key, start + step + 1))(jnp.arange(piece))
            return jax.vmap(lambda own: data.numbers(own, solver.batch_size))(keys)

        def step(carry: tuple[Any, ...], inputs: tuple[Any, Any]) -> tuple[tuple[Any, ...], None]:
            layers, copy, state = carry
            batch = data.batch(inputs[1])
            following = jnp.sum(value(copy, batch.following) * batch.following_weights, axis=1)
            if data.ended is not None:
                following = jnp.where(data.ended[batch.row], 0.0, following)
            if solver.bounded:
                following = jnp.clip(following, least, most)
            target = data.rewards[batch.row] + discount * following

            def loss(layers: Layers) -> Any:
                return 0.5 * jnp.mean((target - value(layers, batch.current)) ** 2) / spread**2

            move, state = optimizer.update(jax.grad(loss)(layers), state)
            layers = jax.tree.map(jnp.add, layers, move)
            copy = jax.tree.map(lambda old, new: (1 - rate) * old + rate * new, copy, layers)
            return (layers, copy, state), None

        layers, _, _ = scan_steps(step, (layers, layers, optimizer.init(layers)), draw, 0, (solver.steps, piece))
        # The scaling becomes part of the last layer, so that the network by itself gives Q.
        weight, bias = layers[-1]
        factor = spread * jnp.sqrt(horizon)
        return [*layers[:-1], (factor * weight, factor * bias + level)]

    return jax.vmap(one)(seeds) if together else lax.map(one, seeds)
