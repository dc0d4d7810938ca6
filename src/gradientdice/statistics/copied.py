"""Are there rows that are copies of others? They look like more data and are none."""

from __future__ import annotations

import numpy as np

from gradientdice.log.transitions import Transitions
from gradientdice.statistics.checks import Check, below

# Copies are one unit in folds and intervals, so that a few do no harm. From this share on the log is not what it seems:
# some rows count several times, and what chose them may have looked at what they show.
CAUTION = 0.02
# Most rows are copies.
ALARM = 0.5


def copied_rows(data: Transitions) -> list[Check]:
    """The share of the rows that count which are exact copies of earlier ones; nothing where there are none."""
    counted = data.row_weights > 0
    share = float(np.mean(data.units.copied[counted]))
    if share == 0:
        return []
    return [
        below(
            "rows that are copies",
            share,
            CAUTION,
            ALARM,
            "share of the rows that repeat an earlier one exactly, to the last digit of continuous values",
            "drop the copies (numpy.unique) and say how often a row counts with weights=; give episodes= if the rows "
            "are real steps of a deterministic environment",
        )
    ]
