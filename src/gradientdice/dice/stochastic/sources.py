"""Where a stochastic learner's transitions come from: fresh from a known MDP, or drawn from a log.

A source draws for a whole block of steps at once, cheaply; it turns what it drew into a minibatch inside the step that
uses it. Sources are pytrees of arrays, so that no data is baked into a compiled program. Those here draw numbers of
rows; `network_source` has the one for networks.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from gradientdice.base.errors import starts_missing
from gradientdice.functions.rows import LearnerRows, Rows, SparseRows, plain, sparse_or_dense
from gradientdice.mdp import TabularMDP
from gradientdice.problem.design import Design


class Batch(NamedTuple):
    """Feature rows of one minibatch."""

    current: LearnerRows
    following: LearnerRows
    initial: LearnerRows


class Source(Protocol):
    """What the learner draws from.

    Attributes:
        bytes_per_draw: the memory that a block's draws take for each transition of each seed.
    """

    bytes_per_draw: ClassVar[int]

    def draw(self, seed: Any, start: Any, length: int, size: int) -> Any:
        """What some steps of a block need, the first axis over steps; it depends on seed and steps alone."""
        ...

    def at_once(self, length: int) -> int:
        """For how many of a block's steps to draw at a time."""
        ...

    def batch(self, drawn: Any) -> Any:
        """The minibatch of one step."""
        ...


class RowSource(eqx.Module):
    """A source that draws the numbers of rows, with features for linear functions."""

    bytes_per_draw: ClassVar[int] = 32  # of five uniform numbers and three row numbers

    num_features: int = eqx.field(static=True)

    @abstractmethod
    def sample(self, key: jax.Array, count: int) -> jax.Array:
        """The numbers of some independent transitions: (count, 3)."""

    @abstractmethod
    def rows(self, drawn: jax.Array) -> Batch:
        """The feature rows of some drawn numbers, (n, 3)."""

    def draw(self, seed: Any, start: Any, length: int, size: int) -> jax.Array:
        """The numbers that the steps of a block use: (length, size, 3)."""
        _, draw_key = seed_keys(seed)
        return self.sample(jax.random.fold_in(draw_key, start), length * size).reshape(length, size, 3)

    def at_once(self, length: int) -> int:
        """For all of them."""
        return length

    def batch(self, drawn: jax.Array) -> Batch:
        """The feature rows of one step."""
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
    starts: Any  # the same of the initial states, (n0,)
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
        row = drawn_rows(first, (count,), len(self.current), self.cumulative)
        starts = drawn_rows(second, (count, 2), len(self.initial), self.starts)
        return jnp.column_stack([row, starts])

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
