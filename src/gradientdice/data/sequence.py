"""Do the rows of an episode follow each other in time?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Int

if TYPE_CHECKING:
    from gradientdice.data.transitions import Transitions

Rows = Int[np.ndarray, " m"]


def breaks(data: Transitions, before: Rows, after: Rows) -> Bool[np.ndarray, " m"]:
    """Whether each row of `after` begins elsewhere than where that of `before` leads.

    Numbers with a fraction may have been rounded differently: they differ from a hundredth of the states' spread on.
    """
    following, states = data.next_states[before], data.states[after]
    if states.dtype.kind in "iu":
        apart = following != states
    else:
        apart = np.abs(following - states) > 0.01 * data.states.std(axis=0) + 1e-12
    return apart.reshape(len(before), -1).any(axis=1)


def in_time_order(data: Transitions) -> bool:
    """Whether most rows of the episodes follow each other; if they do not, their first rows need not be starts."""
    assert data.episodes is not None
    order = np.argsort(data.episodes, kind="stable")
    before, after = order[:-1], order[1:]
    goes_on = data.episodes[before] == data.episodes[after]
    for over in (data.terminated, data.truncated):
        if over is not None:
            goes_on &= ~over[before]
    before, after = before[goes_on], after[goes_on]
    return len(before) == 0 or float(breaks(data, before, after).mean()) <= 0.5
