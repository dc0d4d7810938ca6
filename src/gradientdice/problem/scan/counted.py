"""A table's log in which rows with the same state, action and next state are one row, with weights for their number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from gradientdice.log.transitions import Transitions
from gradientdice.log.units import Units


@dataclass(frozen=True, eq=False)
class CountedLog(Transitions):
    """One row for each (state, action, next state, end) that a log contains; rewards are means, weights are sums.

    What a table's value depends on is the same as of the log itself. Its rows are no observations: intervals need the
    log.

    Attributes:
        row_counts: (n,) how many rows that count each stands for.
        start_counts: (n0,) how many times each of `initial_states` counts.
    """

    row_counts: Float[np.ndarray, " n"] | None = None
    start_counts: Float[np.ndarray, " n0"] | None = None

    @property
    def start_weights(self) -> Float[np.ndarray, " n0"] | None:
        """How many times each of `start_states` counts."""
        return self.start_counts

    @property
    def distinct_rows(self) -> Float[np.ndarray, " n"]:
        """How many rows of the log each of these stands for."""
        assert self.row_counts is not None
        return self.row_counts

    @cached_property
    def units(self) -> Units:
        """Each row by itself: sums of equal rows are no copies of each other."""
        each = np.arange(len(self))
        return Units(each, len(self), each, np.ones(len(self), dtype=bool))
