"""Are rows missing from episodes? A log whose rows were left out for what happened in them misleads.

Rows that were lost at random do no harm. Rows that were filtered, for rewards that looked like outliers or for steps
that failed, take their rewards with them, and nothing in the rows that are left shows it but the gaps.
"""

from __future__ import annotations

import numpy as np

from gradientdice.log.sequence import breaks, is_over
from gradientdice.log.transitions import Transitions
from gradientdice.statistics.checks import Check, below

# The share of steps after which a row is missing.
THRESHOLDS = (0.005, 0.2)


def gap_check(data: Transitions) -> Check | None:
    """The check; None where there are no episodes in time order."""
    if data.episodes is None:
        return None
    order = data.time_order
    if order is None:
        return None
    before, after = order[:-1], order[1:]
    inside = (data.episodes[before] == data.episodes[after]) & ~is_over(data)[before]
    if not inside.any():
        return None
    return below(
        "gaps in episodes",
        float(np.mean(breaks(data, before[inside], after[inside]))),
        *THRESHOLDS,
        "share of the steps that do not lead to where the episode's next row begins: rows are missing, and if they "
        "were left out for what happened in them, the value is wrong",
        "keep all rows of an episode, or make sure that those left out were chosen at random",
    )
