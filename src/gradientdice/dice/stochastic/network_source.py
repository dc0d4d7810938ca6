"""A log as minibatches for networks: each step has a key of its own, and draws are made for a few steps at a time."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from gradientdice.base.errors import starts_missing
from gradientdice.dice.stochastic.pieces import piece_length
from gradientdice.dice.stochastic.sources import drawn_rows, unequal_bits
from gradientdice.problem.inputs import NetworkInputs


class Drawn(NamedTuple):
    """Which rows, initial states and actions a minibatch takes: (B,) each; None for what the log does not need."""

    row: Any
    start: Any
    restart: Any  # the initial state that follows where an episode ended
    actions: Any  # (3, B) which of the policy's draws at the next state, at the start and after a restart


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

    bytes_per_draw: ClassVar[int] = 0  # a piece of a block has few draws

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
        """The numbers that some steps of a block use; those of a step depend on the seed and the step alone."""
        key = jax.random.fold_in(jax.random.key(seed), 1)
        return jax.vmap(lambda step: self.numbers(jax.random.fold_in(key, start + step), size))(jnp.arange(length))

    def at_once(self, length: int) -> int:
        """For a few of them: the draws of a long block of large minibatches would take much memory."""
        return piece_length(length)

    def numbers(self, key: jax.Array, size: int) -> Drawn:
        """The draws of one step, from its key."""
        row_key, start_key, action_key = jax.random.split(key, 3)
        row = drawn_rows(row_key, (size,), len(self.rewards), self.cumulative)
        start, restart = drawn_rows(start_key, (2, size), len(self.initial), self.starts)
        # Any one of the draws has the right distribution, and one pass of the critic is cheaper than several.
        actions = jax.random.randint(action_key, (3, size), 0, self.following.shape[1]) if self.sampled else None
        return Drawn(row, start, None if self.restarts is None else restart, actions)

    def batch(self, drawn: Drawn) -> Minibatch:
        """The minibatch of one step's draws."""
        row, actions = drawn.row, (None, None, None) if drawn.actions is None else drawn.actions
        following, following_weights = _taken(self.following, self.following_weights, row, actions[0])
        initial, initial_weights = _taken(self.initial, self.initial_weights, drawn.start, actions[1])
        if self.restarts is not None:
            again, again_weights = _taken(self.initial, self.initial_weights, drawn.restart, actions[2])
            ended = self.restarts[row]
            following = jnp.where(ended[:, None, None], again, following)
            following_weights = jnp.where(ended[:, None], again_weights, following_weights)
        return Minibatch(row, self.current[row], following, following_weights, initial, initial_weights)


def _taken(inputs: Any, weights: Any, rows: Any, actions: Any) -> tuple[Any, Any]:
    """The inputs and weights of some rows: of all actions, or of one draw in each row."""
    if actions is None:
        return inputs[rows], weights[rows]
    return inputs[rows, actions][:, None], jnp.ones((len(rows), 1))
