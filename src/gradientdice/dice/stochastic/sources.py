"""Transitions for a stochastic learner: fresh from a known MDP, or drawn from a log, for tables, features and networks.

A source draws for a whole block of steps at once, cheaply; it turns what it drew into a minibatch inside the step that
uses it. Sources are pytrees of arrays, so that no data is baked into a compiled program. `RowSource` draws numbers of
rows; `NetworkSource` has a key for each step, and makes draws for a few steps at a time.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import ArrayLike

from gradientdice.base.errors import starts_missing
from gradientdice.functions.rows import LearnerRows, Rows, SparseRows, plain, sparse_or_dense
from gradientdice.mdp import TabularMDP
from gradientdice.problem.design import Design
from gradientdice.problem.inputs import NetworkInputs

# A draw for so many steps costs each of them little; its numbers still fit into a core's own cache.
MOST_AT_ONCE = 64


class Batch(NamedTuple):
    """Feature rows of one minibatch."""

    current: LearnerRows
    following: LearnerRows
    initial: LearnerRows


class Source(Protocol):
    """Supplier of a learner's minibatches.

    Attributes:
        bytes_per_draw: the memory that a block's draws take for each transition of each seed.
    """

    bytes_per_draw: ClassVar[int]

    def draw(self, seed: Any, start: Any, length: int, size: int) -> Any:
        """Random numbers for some steps of a block, the first axis over steps; they depend on seed and steps alone."""
        ...

    def at_once(self, length: int) -> int:
        """The number of a block's steps to draw for at a time."""
        ...

    def batch(self, drawn: Any) -> Any:
        """The minibatch of one step, from its draws."""
        ...


class RowSource(eqx.Module):
    """A source that draws the numbers of rows, with features for linear functions."""

    bytes_per_draw: ClassVar[int] = 32  # of five uniform numbers and three row numbers

    num_features: int = eqx.field(static=True)

    @abstractmethod
    def sample(self, key: jax.Array, count: int) -> jax.Array:
        """Row numbers of some independent transitions: (count, 3)."""

    @abstractmethod
    def rows(self, drawn: jax.Array) -> Batch:
        """The feature rows of some drawn numbers, (n, 3)."""

    def draw(self, seed: Any, start: Any, length: int, size: int) -> jax.Array:
        """Row numbers for the steps of a block: (length, size, 3)."""
        _, draw_key = seed_keys(seed)
        return self.sample(jax.random.fold_in(draw_key, start), length * size).reshape(length, size, 3)

    def at_once(self, length: int) -> int:
        """The whole block: three row numbers per transition are little."""
        return length

    def batch(self, drawn: jax.Array) -> Batch:
        """The feature rows of one step's draws."""
        return self.rows(drawn)


def seed_keys(seed: Any) -> tuple[jax.Array, jax.Array]:
    """One key for the initial weights, one for the draws."""
    init_key, draw_key = jax.random.split(jax.random.key(seed))
    return init_key, draw_key


class MDPSource(RowSource):
    """Independent (s0, a0, s, a, s', a') with s0 ~ μ0, (s,a) ~ d_μ, s' ~ p and both other actions ~ π.

    This is the sampling of the paper's Boyan experiments, next action included; a log is better served by
    the exact expectation over the next action, which `LogSource` uses.
    """

    pairs: Any  # cumulative distribution of (s,a), (SA,)
    successors: Any  # of s' for each pair, (SA, S)
    actions: Any  # of a for each state, (S, A)
    starts: Any  # of s0, (S,)
    features: LearnerRows | None  # of each pair; None is a table

    @classmethod
    def create(cls, mdp: TabularMDP, policy: ArrayLike, data_dist: ArrayLike, features: ArrayLike | None) -> MDPSource:
        """A source for a policy; features (S·A, K) are state-major, None stands for a table."""
        rows = None if features is None else _to_float32(sparse_or_dense(np.asarray(features)))
        return cls(
            mdp.num_states * mdp.num_actions if features is None else np.shape(features)[1],
            _cumulative(np.asarray(data_dist).ravel()),
            _cumulative(mdp.transition.reshape(-1, mdp.num_states)),
            _cumulative(np.asarray(policy)),
            _cumulative(mdp.initial),
            rows,
        )

    def sample(self, key: jax.Array, count: int) -> jax.Array:
        """The numbers of the current, following and initial pairs: (count, 3)."""
        uniform = jax.random.uniform(key, (5, count))
        num_actions = self.actions.shape[1]
        pair = _invert(self.pairs, uniform[0])
        state = _invert(self.successors[pair], uniform[1])
        start = _invert(self.starts, uniform[2])
        following = state * num_actions + _invert(self.actions[state], uniform[3])
        initial = start * num_actions + _invert(self.actions[start], uniform[4])
        return jnp.stack([pair, following, initial], axis=1)

    def rows(self, drawn: jax.Array) -> Batch:
        """The feature rows of some drawn numbers, (n, 3)."""
        return Batch(*(self._features(drawn[:, column]) for column in range(3)))

    def _features(self, pairs: jax.Array) -> LearnerRows:
        return SparseRows(pairs[:, None]) if self.features is None else self.features.take(pairs)


class LogSource(RowSource):
    """Rows of a log, drawn with replacement in proportion to their weights; initial states likewise."""

    current: LearnerRows
    following: LearnerRows
    initial: LearnerRows
    cumulative: Any  # of the weights, (n,), in units of 2⁻³²; None if all are equal
    starts: Any  # of the shares of the initial states, (n0,), likewise
    restarts: Any  # (n,) rows after which an episode restarts from an initial state; None if there are none

    @classmethod
    def create(cls, design: Design, discount: float) -> LogSource:
        """A source over a whole log."""
        if design.initial is None and (discount < 1 or design.absorbing):
            raise starts_missing(discount)
        restart = discount == 1 and design.absorbing
        # At discount 1 the absorbing self-loop, the last row, is not part of the problem.
        keep = slice(0, len(design.rewards) - 1) if restart else slice(None)
        weights = design.weights[keep]
        current = design.current.take(keep)
        return cls(
            design.width,
            _to_float32(current),
            _to_float32(design.following.take(keep)),
            _to_float32(design.following.take(slice(0, 1)) if design.initial is None else design.initial),
            unequal_bits(weights),
            None if design.initial_weights is None else unequal_bits(design.initial_weights),
            jnp.asarray(design.ended[keep]) if restart else None,
        )

    def sample(self, key: jax.Array, count: int) -> jax.Array:
        """The numbers of a transition, an initial state, and one more initial state for a restart: (count, 3)."""
        first, second = jax.random.split(key)
        starts = drawn_rows(second, (count, 2), len(self.initial), self.starts)
        return jnp.column_stack([self.transitions(first, count), starts])

    def transitions(self, key: jax.Array, count: int) -> jax.Array:
        """The numbers of some transitions: (count,)."""
        return drawn_rows(key, (count,), len(self.current), self.cumulative)

    def rows(self, drawn: jax.Array) -> Batch:
        """The feature rows of some drawn numbers, (n, 3)."""
        row, start, restart = drawn[:, 0], drawn[:, 1], drawn[:, 2]
        following = self.following.take(row)
        if self.restarts is not None:
            ended, again = self.restarts[row], self.initial.take(restart)
            following = jax.tree.map(lambda old, new: jnp.where(ended[:, None], new, old), following, again)
        return Batch(self.current.take(row), following, self.initial.take(start))


def _cumulative(probabilities: np.ndarray) -> jax.Array:
    """Cumulative probabilities whose last positive entry is pushed to infinity, so that no draw falls outside."""
    total = np.cumsum(probabilities, axis=-1)
    total[total >= total[..., -1:] * (1 - 1e-12)] = np.inf
    return jnp.asarray(total, dtype=jnp.float32)


def drawn_rows(key: jax.Array, shape: tuple[int, ...], total: int, cumulative: jax.Array | None) -> jax.Array:
    """Numbers of rows out of `total`, in proportion to their weights; None is equal weights."""
    if cumulative is None:
        return jax.random.randint(key, shape, 0, total)
    # A row of weight 0 ends where the one before it ends, so that no number falls on it.
    return jnp.searchsorted(cumulative, jax.random.bits(key, shape, jnp.uint32), side="right")


def unequal_bits(weights: np.ndarray) -> jax.Array | None:
    """Cumulative shares in units of 2⁻³², since float32 could not tell the rows of a long log apart; None if equal."""
    if np.all(weights == weights[0]):
        return None
    exact = np.asarray(weights, dtype=np.float64)
    total = np.cumsum(exact / exact.sum())
    total[total >= total[-1] * (1 - 1e-12)] = 1.0
    return jnp.asarray(np.minimum(np.floor(total * 2.0**32), 2.0**32 - 1).astype(np.uint32))


def _invert(cumulative: jax.Array, uniform: jax.Array) -> jax.Array:
    """The index at which each uniform number falls in its cumulative distribution."""
    return jnp.sum(cumulative <= uniform[:, None], axis=-1, dtype=jnp.int32)


def _to_float32(rows: Rows) -> LearnerRows:
    return jax.tree.map(lambda x: jnp.asarray(x, dtype=jnp.int32 if x.dtype.kind in "iu" else jnp.float32), plain(rows))


class Drawn(NamedTuple):
    """Row numbers of a minibatch's transitions, initial states and actions: (B,) each; None where a log has no use."""

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
        """Draws for some steps of a block; those of a step depend on the seed and the step alone."""
        key = jax.random.fold_in(jax.random.key(seed), 1)
        return jax.vmap(lambda step: self.numbers(jax.random.fold_in(key, start + step), size))(jnp.arange(length))

    def at_once(self, length: int) -> int:
        """A few steps: the draws of a long block of large minibatches would take much memory."""
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


def piece_length(length: int) -> int:
    """The number of a block's steps to draw for at a time, which divides the block."""
    return largest_divisor(length, MOST_AT_ONCE)


def largest_divisor(total: int, most: int) -> int:
    """The largest divisor of a number that is at most so large."""
    return next(size for size in range(min(total, most), 0, -1) if total % size == 0)


def scan_steps(
    step: Callable[[Any, tuple[Any, Any]], tuple[Any, None]],
    carry: Any,
    draw: Callable[[Any], Any],
    first: Any,
    sizes: tuple[int, int],
) -> Any:
    """The carry after a block of steps, whose random numbers are drawn for several steps at a time.

    Small draws inside a step cost as much as a tenth of its arithmetic; one large draw for many steps costs next to
    nothing, but takes memory for all of them.

    Args:
        step: from the carry and (the number of the step, what is drawn for it) to (the next carry, None).
        carry: before the first step.
        draw: from the number of a piece's first step to what its steps need, the first axis over steps.
        first: the number of the first step.
        sizes: how many steps there are, and how many of them a piece has.
    """
    length, size = sizes

    def piece(carry: Any, start: Any) -> tuple[Any, None]:
        return lax.scan(step, carry, (start + jnp.arange(size), draw(start)))[0], None

    if size == length:
        return piece(carry, first)[0]
    return lax.scan(piece, carry, first + size * jnp.arange(length // size))[0]
