"""The highest number of a state, where nobody says how large the table is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gradientdice.log.scanning.parts import Batch
from gradientdice.log.scanning.passes import Sums


class ExtentPass:
    """The highest number among states, next states that are used, and initial states."""

    name = "states"
    fields = ("terminated", "initial_states")
    is_heavy = False

    def over(self, part: int, batches: Iterator[Batch]) -> Sums:
        """That of one part."""
        highest = 0
        for batch in batches:
            data = batch.data
            used = [data.states, data.next_states[~data.ended]]
            if batch.starts is not None:
                used.append(batch.starts)
            highest = max(highest, *(int(states.max(initial=0)) for states in used))
        return {"highest": np.array([highest])}

    def merged(self, left: Sums, right: Sums) -> Sums:
        """That of two stretches."""
        return {"highest": np.maximum(left["highest"], right["highest"])}
