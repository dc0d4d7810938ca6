"""The Bayesian bootstrap's weights: Dirichlet(1, …, 1) over independent units, as independent exponentials.

A value depends on the weights' proportions only, so that they need not be divided by their sum. Units that are rows of
one kind (the same transition, reward and weight) are drawn together: the sum of m exponentials is a Gamma(m).

References:
    Rubin, The Bayesian Bootstrap, Annals of Statistics 1981.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from gradientdice.data.transitions import Transitions


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
class RowKinds:
    """A table's rows by kind, and how the units' weights become those of the kinds.

    Attributes:
        first: (k,) a row of each kind.
        weights: of the units that are drawn.
        rows: (u, k) how often each kind counts in each unit.
        first_start: (m,) an initial state of each kind, as a place among the log's; None without any.
        starts: (u, m) how often each start counts in each unit, where starts are the episodes' own; else None.
    """

    first: Int[np.ndarray, " k"]
    weights: GammaWeights
    rows: csr_array
    first_start: Int[np.ndarray, " m"] | None
    starts: csr_array | None

    @classmethod
    def of(cls, data: Transitions) -> RowKinds:
        """The kinds of a log whose states and actions are whole numbers."""
        counted = np.flatnonzero(data.units.rows >= 0)
        following = np.where(data.ended, -1, data.next_states)
        columns = np.column_stack([data.states, data.actions, following, data.rewards])[counted]
        _, first, kind = np.unique(columns, axis=0, return_index=True, return_inverse=True)
        kind, unit, weight = kind.reshape(-1), data.units.rows[counted], data.row_weights[counted]
        count = data.units.count
        if data.episodes is None:
            # A unit is a row with its copies: those of one kind and weight are drawn together.
            own = np.zeros(count)
            np.add.at(own, unit, weight)
            of_unit = np.zeros(count, dtype=np.int64)
            of_unit[unit] = kind
            pairs, shapes = np.unique(np.column_stack([of_unit, own]), axis=0, return_counts=True)
            groups = np.arange(len(pairs)), pairs[:, 0].astype(np.int64)
            rows = csr_array((pairs[:, 1], groups), shape=(len(pairs), len(first)))
        else:
            shapes = np.ones(count)
            rows = csr_array((weight, (unit, kind)), shape=(count, len(first)))
        shapes = shapes.astype(np.float64)
        if data.start_states is None:
            return cls(counted[first], GammaWeights(shapes, None), rows, None, None)
        _, first_start, start, counts = np.unique(
            data.start_states, return_index=True, return_inverse=True, return_counts=True
        )
        if data.initial_states is not None:
            drawn = GammaWeights(shapes, counts.astype(np.float64))
            return cls(counted[first], drawn, rows, first_start, None)
        begun = data.first_rows
        used = data.units.rows[begun] >= 0
        starts = csr_array(
            (data.row_weights[begun][used], (data.units.rows[begun][used], start[used])),
            shape=(count, len(first_start)),
        )
        return cls(counted[first], GammaWeights(shapes, None), rows, first_start, starts)

    def counts(self, drawn: Drawn) -> tuple[Float[np.ndarray, "b k"], Float[np.ndarray, "b m"] | None]:
        """How often each kind of row, and each kind of initial state, counts in each draw."""
        rows = drawn.rows @ self.rows
        return rows, drawn.starts if self.starts is None else drawn.rows @ self.starts
