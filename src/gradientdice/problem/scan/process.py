"""A counted log without its actions: the behaviour's own Markov reward process, in which nothing is left to choose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from gradientdice.functions import Tabular
from gradientdice.log.scanning.passes import Sums
from gradientdice.log.transitions import Transitions
from gradientdice.problem.scan.cells import CellCodes
from gradientdice.problem.scan.counted import CountedLog
from gradientdice.problem.scan.counts import counted_log


@dataclass(frozen=True)
class StateCodes(CellCodes):
    """Cells of a table with one action, whichever action a row has."""

    def of(self, data: Transitions) -> Int[np.ndarray, " n"]:
        """The code of each row, whose states were checked when they were counted."""
        count = self.table.num_states
        return data.states.astype(np.int64) * (count + 1) + np.where(data.ended, count, data.next_states)


def without_actions(table: Tabular, sums: Sums) -> tuple[StateCodes, CountedLog, Int[np.ndarray, " C"]]:
    """The codes of the cells without actions, their counts as a log, and which of them each cell of the table is."""
    codes = StateCodes(Tabular(table.num_states, 1))
    state, _, following, ended = CellCodes(table).parts(sums["codes"])
    code = state * (table.num_states + 1) + np.where(ended, table.num_states, following)
    kept, merged = np.unique(code, return_inverse=True)
    names = ("cell_rows", "cell_weight", "cell_reward")
    added = {name: np.bincount(merged, sums[name], minlength=len(kept)) for name in names}
    return codes, counted_log(codes.table, {**sums, **added, "codes": kept}), merged
