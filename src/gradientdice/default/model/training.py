"""Training of many networks of one shape in one compiled program, with early stopping.

AdamW with cosine decay on minibatches, whose rows are drawn beforehand, so that folds of different sizes are arrays of
one shape. After each block of steps a network is scored on rows held out from it; the best parameters are kept, the
untrained network's among them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from gradientdice.base.compiling import quickly_compiled
from gradientdice.default.model.network import Network

BLOCKS = 20
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 1e-4
WARM_UP = 0.05


class Samples(NamedTuple):
    """Rows to learn from.

    Attributes:
        inputs: (n, d), standardised.
        targets: (n, k), standardised; where the last column is a probability's outcome, 0 or 1.
        weights: (n, k) how much each target counts; 0 where it is not known.
    """

    inputs: Any
    targets: Any
    weights: Any


def losses(outputs: Float[Array, "n k"], samples: Samples, logistic: bool) -> Float[Array, "n k"]:
    """Squared errors; for the last column, if it is a log-odds, the cross-entropy."""
    errors = (outputs - samples.targets) ** 2
    if logistic:
        odds = outputs[:, -1]
        crossed = jnp.logaddexp(0.0, odds) - odds * samples.targets[:, -1]
        errors = errors.at[:, -1].set(crossed)
    return errors * samples.weights


def scored(network: Network, samples: Samples, logistic: bool) -> Float[Array, ""]:
    """The loss of a network: the mean over the targets of each one's mean over the rows where it is known."""
    errors = losses(network(samples.inputs), samples, logistic).sum(axis=0)
    return jnp.mean(errors / jnp.maximum(samples.weights.sum(axis=0), 1.0))


@quickly_compiled(static_argnames=("logistic",))
def train(
    networks: Network,
    samples: Samples,
    batches: Int[Array, "j blocks steps batch"],
    held_out: Int[Array, "j m"],
    logistic: bool = False,
) -> tuple[Network, Float[Array, "j m k"]]:
    """Each network trained on rows of its own, and its outputs on the rows held out from it.

    Args:
        networks: j of them, stacked.
        samples: the rows of all.
        batches: for each network and step the rows to learn from; after each block of steps it is scored.
        held_out: for each network the rows to score it on.
        logistic: whether the last output is a log-odds.
    """
    count = batches.shape[1] * batches.shape[2]
    rate = optax.warmup_cosine_decay_schedule(0.0, LEARNING_RATE, max(1, round(WARM_UP * count)), count)
    optimiser = optax.adamw(rate, weight_decay=WEIGHT_DECAY)

    def step(state: tuple[Any, Any], rows: Int[Array, " batch"]) -> tuple[tuple[Any, Any], None]:
        network, moments = state
        gradient = jax.grad(scored)(network, _taken(samples, rows), logistic)
        change, moments = optimiser.update(gradient, moments, network)
        return (optax.apply_updates(network, change), moments), None

    def trained(network: Any, batches: Int[Array, "blocks steps batch"], rows: Int[Array, " m"]) -> tuple[Any, Array]:
        unseen = _taken(samples, rows)

        def block(state: Any, batches: Int[Array, "steps batch"]) -> tuple[Any, None]:
            current, best, least = state
            current, _ = jax.lax.scan(step, current, batches)
            loss = scored(current[0], unseen, logistic)
            best = jax.tree.map(lambda new, old: jnp.where(loss < least, new, old), current[0], best)
            return (current, best, jnp.minimum(loss, least)), None

        first = (network, optimiser.init(network))
        (_, best, _), _ = jax.lax.scan(block, (first, network, scored(network, unseen, logistic)), batches)
        return best, best(unseen.inputs)

    return jax.vmap(trained)(networks, batches, held_out)


def _taken(samples: Samples, rows: Int[Array, " m"]) -> Samples:
    return Samples(*(array[rows] for array in samples))


def batches_of(
    rows: Int[np.ndarray, " m"], weights: Float[np.ndarray, " m"], steps: int, batch: int, rng: np.random.Generator
) -> Int[np.ndarray, "blocks steps batch"]:
    """Rows for each training step: shuffled passes over all of them, or draws by weight where weights differ."""
    each = max(1, round(steps / BLOCKS))
    size = BLOCKS * each * batch
    if np.all(weights == weights[0]):
        passes = -(-size // len(rows))
        drawn = np.concatenate([rng.permutation(rows) for _ in range(passes)])[:size]
    else:
        drawn = rng.choice(rows, size=size, p=weights / weights.sum())
    return drawn.reshape(BLOCKS, each, batch).astype(np.int32)
