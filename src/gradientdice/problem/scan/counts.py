"""The first pass over a table's log: counts of its cells and of its starts, from which the value follows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Num

from gradientdice.functions import Tabular
from gradientdice.log.scanning.parts import Batch
from gradientdice.log.scanning.passes import Sums
from gradientdice.problem.scan.cell_counts import CellCounter, merged_cells
from gradientdice.problem.scan.cells import CellCodes
from gradientdice.problem.scan.counted import CountedLog
from gradientdice.problem.scan.facts import COLUMNS, FactsCounter, FactsPass

START_KEYS = ("start_state", "start_weight", "start_rows")


@dataclass(eq=False)
class CountPass(FactsPass):
    """Counts of a table.

    Attributes:
        table: the table.
    """

    table: Tabular = field(kw_only=True)

    @property
    def kind(self) -> str:
        """In a word."""
        return "counts"

    def counter(self) -> _Counter:
        """What counts the rows of one part."""
        return _Counter(self)

    def start_sums(self, states: Num[np.ndarray, " m"], weights: Float[np.ndarray, " m"]) -> Sums:
        """The different states, in the order in which they first came, and how often each counts."""
        self.table.check("initial_states", states, self.table.num_states)
        return _starts(states.astype(np.int64), weights, np.ones(len(states)))

    def as_states(self, runs: Float[np.ndarray, "m k"]) -> Num[np.ndarray, " m"]:
        """The first states of some runs."""
        return runs[:, COLUMNS].astype(np.int64)

    def together(self, left: Sums, right: Sums) -> Sums:
        """Cells and starts are matched; the rest adds up."""
        special: Sums = {}
        if "codes" in left and "codes" in right:
            special |= merged_cells(left, right)
        if "start_state" in left and "start_state" in right:
            special |= _starts(*(np.concatenate([left[name], right[name]]) for name in START_KEYS))
        kept = [{name: array for name, array in side.items() if name not in special} for side in (left, right)]
        return {**super().together(*kept), **special}


class _Counter(FactsCounter):
    def __init__(self, work: CountPass) -> None:
        super().__init__(work)
        self._cells = CellCounter(CellCodes(work.table))

    def add(self, batch: Batch) -> None:
        """Adds the rows of a batch."""
        super().add(batch)
        self._cells.add(batch.data)

    def sums(self) -> Sums:
        """What they come to."""
        return {**super().sums(), **self._cells.sums()}


def _starts(states: np.ndarray, weights: np.ndarray, rows: np.ndarray) -> Sums:
    names, first, index = np.unique(states, return_index=True, return_inverse=True)
    order = np.argsort(first)
    totals = (np.bincount(index, part, minlength=len(names))[order] for part in (weights, rows))
    return dict(zip(START_KEYS, (names[order], *totals), strict=True))


def counted_log(table: Tabular, sums: Sums) -> CountedLog:
    """The counts of a whole log as a log with weights."""
    states, actions, following, ended = CellCodes(table).parts(sums["codes"])
    weight, starts = sums["cell_weight"], sums.get("start_state")
    counts = sums.get("start_weight")
    if counts is not None and not counts.any():
        starts = counts = None  # every episode's first row counts 0 times
    return CountedLog(
        states,
        actions,
        np.divide(sums["cell_reward"], weight, out=np.zeros(len(weight)), where=weight > 0),
        following,
        initial_states=starts,
        terminated=ended if ended.any() else None,
        weights=weight,
        row_counts=sums["cell_rows"],
        start_counts=counts,
    )
