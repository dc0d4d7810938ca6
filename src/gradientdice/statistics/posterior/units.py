"""The Bayesian bootstrap's weights: Dirichlet(1, …, 1) over independent units, as independent exponentials.

A value depends on the weights' proportions only, so that they need not be divided by their sum. Units that are rows
with the same transition, reward and weight are drawn together: the sum of m exponentials is a Gamma(m).

References:
    Rubin, The Bayesian Bootstrap, Annals of Statistics 1981.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from gradientdice.log.transitions import Transitions


@dataclass(frozen=True, eq=False)
class Drawn:
    """A batch of weights.

    Attributes:
        rows: (b, u) of the units, or of the groups of units that are alike.
        starts: (b, m) of initial states that are given beside the log; None if there are none.
    """

    rows: Float[np.ndarray, "b u"]
    starts: Float[np.ndarray, "b m"] | None


@dataclass(frozen=True, eq=False)
class GammaWeights:
    """Independent Gamma weights, in batches; the same seed gives the same weights for every policy.

    Attributes:
        rows: (u,) the shapes of the units' weights: how many units each stands for.
        starts: (m,) those of the initial states that are given; None if there are none.
    """

    rows: Float[np.ndarray, " u"]
    starts: Float[np.ndarray, " m"] | None

    def draw(self, count: int, rng: np.random.Generator) -> Drawn:
        """A batch of weights."""
        rows = rng.standard_gamma(self.rows, size=(count, len(self.rows)))
        starts = None if self.starts is None else rng.standard_gamma(self.starts, size=(count, len(self.starts)))
        return Drawn(rows, starts)


@dataclass(frozen=True, eq=False)
class WeightedCells:
    """A table's rows by cell (state, action, next state or end), and how the units' weights become those of the cells.

    Attributes:
        first: (k,) a row of each cell.
        weights: of the units that are drawn.
        rows: (k, u) how often each cell counts in each unit.
        rewards: (k, u) the sum of its rewards there.
        first_start: (m,) an initial state of each kind, as a place among the log's; None without any.
        starts: (m, u) how often each start counts in each unit, where starts are the episodes' own; else None.
    """

    first: Int[np.ndarray, " k"]
    weights: GammaWeights
    rows: csr_array
    rewards: csr_array
    first_start: Int[np.ndarray, " m"] | None
    starts: csr_array | None

    @classmethod
    def of(cls, data: Transitions) -> WeightedCells:
        """The cells of a log whose states and actions are whole numbers."""
        counted = np.flatnonzero(data.units.rows >= 0)
        following = np.where(data.ended, -1, data.next_states)
        columns = np.column_stack([data.states, data.actions, following])[counted]
        _, first, cell = np.unique(columns, axis=0, return_index=True, return_inverse=True)
        cell, unit = cell.reshape(-1), data.units.rows[counted]
        weight, reward = data.row_weights[counted], data.rewards[counted]
        shapes = np.ones(data.units.count)
        if data.episodes is None:
            cell, reward, weight, shapes = _alike(cell, reward, np.bincount(unit, weight), unit)
            unit = np.arange(len(shapes))
        size = (len(first), len(shapes))
        rows, rewards = (csr_array((amount, (cell, unit)), shape=size) for amount in (weight, weight * reward))
        if data.start_states is None:
            return cls(counted[first], GammaWeights(shapes, None), rows, rewards, None, None)
        _, first_start, start, counts = np.unique(
            data.start_states, return_index=True, return_inverse=True, return_counts=True
        )
        if data.initial_states is not None:
            drawn = GammaWeights(shapes, counts.astype(np.float64))
            return cls(counted[first], drawn, rows, rewards, first_start, None)
        begun = data.first_rows
        used = data.units.rows[begun] >= 0
        starts = csr_array(
            (data.row_weights[begun][used], (start[used], data.units.rows[begun][used])),
            shape=(len(first_start), len(shapes)),
        )
        return cls(counted[first], GammaWeights(shapes, None), rows, rewards, first_start, starts)

    def starts_of(
        self, given: Float[np.ndarray, "b m"] | None, units: Float[np.ndarray, "u b"]
    ) -> Float[np.ndarray, "m b"] | None:
        """How often each kind of initial state counts in each draw: by weights of their own, or by the units'."""
        if self.starts is not None:
            return self.starts @ units
        return None if given is None else given.T


def _alike(
    cell: np.ndarray, reward: np.ndarray, weight: np.ndarray, unit: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Units that are rows (with their copies) in groups of one cell, reward and weight, and how many each has."""
    _, row = np.unique(unit, return_index=True)
    columns = np.column_stack([cell[row], reward[row], weight])
    groups, counts = np.unique(columns, axis=0, return_counts=True)
    return groups[:, 0].astype(np.int64), groups[:, 1], groups[:, 2], counts.astype(np.float64)
