"""A log as minibatches for networks: each step has a key of its own, and its draws take memory only while it runs."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from gradientdice.errors import starts_missing
from gradientdice.problem.inputs import NetworkInputs
from gradientdice.solvers.stochastic.sources import drawn_rows, unequal_bits


class Minibatch(NamedTuple):
    """Inputs and weights of some transitions and as many initial states."""

    row: Any
    current: Any  # (B, d)
    following: Any  # (B, m, d)
    following_weights: Any  # (B, m)
    initial: Any
    initial_weights: Any


class NetworkSource(eqx.Module):
    """A log on the device, drawn with replacement in proportion to its weights."""

    bytes_per_draw: ClassVar[int] = 0

    current: Any  # (n, d)
    following: Any  # (n, m, d)
    following_weights: Any  # (n, m)
    initial: Any  # (n0, m, d)
    initial_weights: Any  # (n0, m)
    starts: Any  # cumulative shares of the initial states, (n0,), in units of 2⁻³²; None if all are equal
    rewards: Any  # (n,)
    weights: Any  # (n,), which sum to 1
    cumulative: Any  # of the weights, (n,), in units of 2⁻³²; None if all are equal
    ended: Any  # (n,) rows whose next state is the absorbing one; None if there are none
    restarts: Any  # (n,) rows after which an episode restarts; None if there are none
    sampled: bool = eqx.field(static=True)

    @classmethod
    def create(cls, inputs: NetworkInputs, discount: float) -> NetworkSource:
        """A log for a discount: at 1 ended episodes restart instead of being absorbed."""
        restart = discount == 1 and (inputs.absorbing or inputs.restarts)
        if inputs.initial is None and (discount < 1 or restart):
            raise starts_missing(discount)
        used = inputs.without_absorbing() if restart else inputs
        weights = used.weights
        initial = used.following[:1] if used.initial is None else used.initial
        initial_weights = used.following_weights[:1] if used.initial_weights is None else used.initial_weights
        return cls(
            jnp.asarray(used.current),
            jnp.asarray(used.following),
            jnp.asarray(used.following_weights),
            jnp.asarray(initial),
            jnp.asarray(initial_weights),
            None if used.start_shares is None else unequal_bits(used.start_shares),
            jnp.asarray(used.rewards),
            jnp.asarray(weights),
            unequal_bits(weights),
            jnp.asarray(used.ended) if used.absorbing else None,
            jnp.asarray(used.ended) if restart else None,
            used.sampled,
        )

    def draw(self, seed: Any, start: Any, length: int, size: int) -> Any:
        """One key for each step of a block, which depends on the seed and the step alone."""
        key = jax.random.fold_in(jax.random.key(seed), 1)
        return jax.vmap(lambda step: jax.random.fold_in(key, start + step))(jnp.arange(length))

    def batch(self, drawn: Any, size: int) -> Minibatch:
        """The minibatch of one step's key."""
        row_key, start_key, action_key = jax.random.split(drawn, 3)
        row = drawn_rows(row_key, (size,), len(self.rewards), self.cumulative)
        starts, again = drawn_rows(start_key, (2, size), len(self.initial), self.starts)
        if self.sampled:
            # Any one of the draws has the right distribution, and one pass of the critic is cheaper than several.
            which = jax.random.randint(action_key, (3, size), 0, self.following.shape[1])
            following, initial = self.following[row, which[0]][:, None], self.initial[starts, which[1]][:, None]
            restart = self.initial[again, which[2]][:, None]
            following_weights = initial_weights = restart_weights = jnp.ones((size, 1))
        else:
            following, following_weights = self.following[row], self.following_weights[row]
            initial, initial_weights = self.initial[starts], self.initial_weights[starts]
            restart, restart_weights = self.initial[again], self.initial_weights[again]
        if self.restarts is not None:
            ended = self.restarts[row]
            following = jnp.where(ended[:, None, None], restart, following)
            following_weights = jnp.where(ended[:, None], restart_weights, following_weights)
        return Minibatch(row, self.current[row], following, following_weights, initial, initial_weights)
