"""What came before each step of a log, where its rows are in time order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from gradientdice.log.sequence import follows_in_time
from gradientdice.log.transitions import Transitions

# Steps that are looked at, in blocks spread over the log; more see no more than they need and take longer.
MOST_STEPS = 20_000
BLOCK = 500
# How far back means look. Values whose mean over the log is 0 go against their own sum so far, the more so the longer
# it is; over a few steps that cannot be seen.
WINDOW = 20


@dataclass(frozen=True, eq=False)
class Past:
    """Some rows of a log in time order, and where the run of rows that each belongs to begins.

    Attributes:
        rows: (m,) rows of the log.
        start: (m,) the position among them at which the run begins.
    """

    rows: Int[np.ndarray, " m"]
    start: Int[np.ndarray, " m"]

    @classmethod
    def of(cls, data: Transitions, most: int = MOST_STEPS) -> Past | None:
        """The past of a log's rows; None if they are not in time order, or no row follows another."""
        order = data.time_order
        if order is None:
            return None
        begins = np.append(True, ~follows_in_time(data, order))
        if len(order) > most:
            blocks = np.linspace(0, len(order) - BLOCK, most // BLOCK).astype(np.int64)
            chosen = (blocks[:, None] + np.arange(BLOCK)).ravel()
            order, begins = order[chosen], begins[chosen]
            begins[::BLOCK] = True
        found = cls(order, np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0)))
        return found if found.known.any() else None

    @cached_property
    def steps(self) -> Int[np.ndarray, " m"]:
        """How many steps of its run came before each."""
        return np.arange(len(self.start)) - self.start

    @cached_property
    def known(self) -> Bool[np.ndarray, " m"]:
        """Which steps have one before them."""
        return self.steps > 0

    def before(self, values: Shaped[np.ndarray, " m"], lag: int = 1) -> Shaped[np.ndarray, " m"]:
        """The values so many steps before, or at the start of the run."""
        return values[np.maximum(np.arange(len(self.start)) - lag, self.start)]

    def mean(self, values: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
        """The mean of the values of up to `WINDOW` earlier steps of the run, times the root of their number.

        So scaled, the mean of noise is of the same size everywhere. It is 0 at the start.
        """
        total = np.append(0.0, np.cumsum(values))
        count = np.minimum(self.steps, WINDOW)
        return (total[:-1] - total[np.arange(len(values)) - count]) / np.sqrt(np.maximum(count, 1))
