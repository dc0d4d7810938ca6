"""Draws from many finite distributions at once, by inverting all their distribution functions in one search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class RowDraws:
    """The distribution functions of a matrix's rows, stacked: row r occupies (r, r + 1].

    Attributes:
        stacked: r + F_r at each stored entry, in row order.
        outcomes: the column of each stored entry.
    """

    stacked: np.ndarray
    outcomes: np.ndarray

    @classmethod
    def dense(cls, distributions: np.ndarray) -> RowDraws:
        """Draws from the rows of an array (rows, outcomes)."""
        cumulative = np.cumsum(distributions, axis=1)
        cumulative /= cumulative[:, -1:]
        rows, outcomes = distributions.shape
        return cls((cumulative + np.arange(rows)[:, None]).ravel(), np.tile(np.arange(outcomes), rows))

    @classmethod
    def sparse(cls, distributions: csr_array) -> RowDraws:
        """Draws from the rows of a sparse matrix, none of them empty, in memory proportional to its entries."""
        lengths = np.diff(distributions.indptr)
        row = np.repeat(np.arange(len(lengths)), lengths)
        running = np.concatenate([[0.0], np.cumsum(distributions.data)])
        start, end = running[distributions.indptr[:-1]], running[distributions.indptr[1:]]
        stacked = row + (running[1:] - start[row]) / (end - start)[row]
        return cls(stacked, distributions.indices)

    def draw(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One outcome for each given row."""
        # Rounding can push row + u up to row + 1 when u is within an ulp of 1.
        position = np.minimum(rows + rng.random(len(rows)), np.nextafter(rows + 1.0, 0))
        return self.outcomes[np.searchsorted(self.stacked, position, side="right")].astype(np.int64)
