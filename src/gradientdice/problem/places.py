"""Where the rows of a table's log lie, and the model that they make: the same for all policies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Integer
from scipy.sparse import csr_array

from gradientdice.log.transitions import Transitions
from gradientdice.mdp.finite import SparseMDP
from gradientdice.problem.support import TableSupport


@dataclass(frozen=True, eq=False)
class Places:
    """The rows of a log as parts of its empirical MDP; a pair is state · A + action.

    Attributes:
        data: the log.
        pair: (n,) the pair of each row.
        following: (n,) the state that it leads to.
        initial: (n0,) the initial states; None if they are not known.
        end: the number of the state after the end, which is the last; None if nothing ended.
        absorbs: whether the end absorbs; else it is a portal to the next start.
        logged: (S, A) the weight of each pair.
    """

    data: Transitions
    pair: Integer[np.ndarray, " n"]
    following: Integer[np.ndarray, " n"]
    initial: Integer[np.ndarray, " n0"] | None
    end: int | None
    absorbs: bool
    logged: Float[np.ndarray, "S A"]

    @classmethod
    def of(cls, support: TableSupport, starts: Integer[np.ndarray, " n0"] | None, *, absorbs: bool) -> Places:
        """Those of the log that keeps to the pairs that it contains."""
        data, table = support.data, support.table
        states, actions = table.features.shape
        end = states if data.ended.any() else None
        pair = table.index(data.states) * actions + data.actions
        following = table.index(np.where(data.ended, data.states, data.next_states))
        if end is not None:
            following[data.ended] = end
        size = states + (end is not None)
        logged = np.bincount(pair, weights=data.row_weights, minlength=size * actions).reshape(size, actions)
        return cls(data, pair, following, None if starts is None else table.index(starts), end, absorbs, logged)

    @property
    def counted_starts(self) -> Integer[np.ndarray, " k"]:
        """The initial states that have weight."""
        assert self.initial is not None and self.data.start_weights is not None
        return self.initial[self.data.start_weights > 0]

    @cached_property
    def mdp(self) -> SparseMDP:
        """The model."""
        (size, actions), logged, data = self.logged.shape, self.logged.ravel(), self.data
        start = np.zeros(size)
        if self.initial is None:
            start[0] = 1.0  # not asked for at discount 1 where nothing ends
        else:
            start[:] = np.bincount(self.initial, data.start_weights, minlength=size)
            start /= start.sum()
        # Nothing reaches a pair that was never logged: it may lead anywhere that is reached.
        empty = np.flatnonzero(logged <= 0)
        first = int(self.following[0] if self.initial is None else self.counted_starts[0])
        rows, columns = [self.pair, empty], [self.following, np.full(len(empty), first)]
        shares = [data.row_weights / np.maximum(logged[self.pair], 1e-300), np.ones(len(empty))]
        if self.end is not None:
            inside = empty // actions != self.end
            rows[1], columns[1], shares[1] = empty[inside], columns[1][inside], shares[1][inside]
            places = np.array([self.end]) if self.absorbs else np.flatnonzero(start)
            rows.append(np.repeat(self.end * actions + np.arange(actions), len(places)))
            columns.append(np.tile(places, actions))
            shares.append(np.ones(actions) if self.absorbs else np.tile(start[places], actions))
        transition = csr_array(
            (np.concatenate(shares), (np.concatenate(rows), np.concatenate(columns))), shape=(size * actions, size)
        )
        reward = np.bincount(self.pair, weights=data.row_weights * data.rewards, minlength=size * actions)
        reward = np.divide(reward, logged, out=np.zeros_like(reward), where=logged > 0)
        return SparseMDP(transition, reward.reshape(size, actions), start)
