"""How long an answer takes on many workers, by what was measured of its pieces on one machine.

    T(workers) = fixed + max(parts ÷ workers · t_part + levels · (t_merge + t_move),
                             tasks · t_task,
                             blocks · (t_merge + t_move))

The first line is what the workers do, the second the scheduler, the third the client, which merges the blocks that
come from the workers one by one; the three go on at the same time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# As `gradientdice.log.scanning` has them: the rows of a part, and how many levels of merges are made by workers.
PART_ROWS, BLOCK_LEVELS = 4_000_000, 3
# Bytes per second between two machines: ten gigabits.
NETWORK = 1.25e9


@dataclass(frozen=True)
class Costs:
    """What was measured.

    Attributes:
        fixed: seconds of an answer beside the pass: the sample, the solve, the diagnostics.
        row: seconds per row of a part on one core.
        merge: seconds of a merge of two sums.
        task: seconds of the scheduler per task.
        size: bytes of the sums of a part.
    """

    fixed: float
    row: float
    merge: float
    task: float
    size: float

    def seconds(self, rows: float, workers: int, cores: int | None = None) -> float:
        """An answer from so many rows; the workers share `cores` if there are fewer of them."""
        parts = math.ceil(rows / PART_ROWS)
        blocks = math.ceil(parts / 2**BLOCK_LEVELS)
        move = self.size / NETWORK
        busy = min(workers, cores or workers)
        working = max(parts / busy, 1) * self.row * min(rows, PART_ROWS)
        working += (parts - blocks) / busy * (self.merge + move)
        return self.fixed + max(working, (2 * parts - blocks) * self.task, blocks * (self.merge + move))
