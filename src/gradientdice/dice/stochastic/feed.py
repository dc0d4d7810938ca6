"""Minibatches from a log that is not in memory: a source for each block of steps, made of rows that are read for it.

The rows come from a shuffled stream, each once in an epoch. A block's rows are put into an order of its own for each
seed, so that seeds see different minibatches of the same stretch of the log. What a block reads follows from its first
step alone: a run that goes on from a checkpoint in the middle of an epoch has the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.dice.stochastic.network_source import Drawn, NetworkSource
from gradientdice.dice.stochastic.plan import Plan
from gradientdice.dice.stochastic.sources import LogSource, Source, drawn_rows
from gradientdice.log.scanning.shuffled import ShuffledRows
from gradientdice.log.split import some_rows
from gradientdice.log.transitions import Transitions


@dataclass(frozen=True, eq=False)
class Feed:
    """Where the sources of blocks come from.

    Attributes:
        rows: the stream.
        make: from some rows of the log, and how many rows of the absorbing state there are beside them, to a source.
        share: of the rows of minibatches, those of the log; the others are the absorbing state's own.
        inputs: from rows of the log to what the functions read, the absorbing state's indicator last if there is one.
        sample: any rows of the log.
        identity: what tells one log, policy and function class from another.
    """

    bytes_per_draw: ClassVar[int] = 32

    rows: ShuffledRows
    make: Callable[[Transitions, int], Source]
    share: float
    inputs: Callable[[Transitions], np.ndarray]
    sample: Transitions
    identity: str

    @property
    def width(self) -> int:
        """How many numbers the functions read."""
        return self.inputs(some_rows(self.sample, np.arange(1))).shape[1]

    def template(self, plan: Plan) -> Source:
        """A source of the shapes that a block has, of any rows."""
        rows, loops = self._counts(plan, *next(plan.blocks()))
        return self.make(some_rows(self.sample, np.resize(np.arange(len(self.sample)), rows)), loops)

    def sources(self, plan: Plan, done: int) -> Iterator[Source]:
        """The sources of the blocks that are not done yet, one after the other."""
        blocks = list(plan.blocks())[done:]
        if not blocks:
            return
        counts = [self._counts(plan, *block) for block in blocks]
        pieces = self.rows.pieces(self._position(plan, blocks[0][0]), (rows for rows, _ in counts))
        for data, (_, loops) in zip(pieces, counts, strict=True):
            yield self.make(data, loops)

    def _position(self, plan: Plan, step: int) -> int:
        """How many rows of the stream the steps before this one take."""
        return math.floor(self.share * step * plan.batch_size)

    def _counts(self, plan: Plan, first: int, length: int) -> tuple[int, int]:
        """How many rows of the log a block has, and of the absorbing state."""
        rows = self._position(plan, first + length) - self._position(plan, first)
        if rows == 0:
            raise InputError(
                f"{length} steps with minibatches of {plan.batch_size} are too few to be read at a time from a scanned "
                "log: choose a larger batch_size or record_every, and steps that record_every divides."
            )
        return rows, length * plan.batch_size - rows


class BlockSource(LogSource):
    """The rows of one block, each of which is used once."""

    def sample(self, key: jax.Array, count: int) -> jax.Array:
        """The rows in an order, each with an initial state and one more for a restart: (count, 3)."""
        first, second = jax.random.split(key)
        row = jax.random.permutation(first, len(self.current))[:count]
        starts = drawn_rows(second, (count, 2), len(self.initial), self.starts)
        return jnp.column_stack([row, starts])


class NetworkBlockSource(NetworkSource):
    """The same for networks."""

    bytes_per_draw: ClassVar[int] = 32

    def draw(self, seed: Any, start: Any, length: int, size: int) -> Drawn:
        """The rows in an order, (length, size), with initial states and actions."""
        keys = jax.random.split(jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), 1), start), 3)
        shape = length, size
        row = jax.random.permutation(keys[0], len(self.rewards))[: length * size].reshape(shape)
        starts, restarts = drawn_rows(keys[1], (2, *shape), len(self.initial), self.starts)
        count = self.following.shape[1]
        actions = jax.random.randint(keys[2], (length, 3, size), 0, count) if self.sampled else None
        return Drawn(row, starts, None if self.restarts is None else restarts, actions)

    def at_once(self, length: int) -> int:
        """For all of them: the order is that of the whole block."""
        return length
