"""Does the log record how its episodes end, and what their last rows paid?

Taken for a termination, the last row of an episode is worth its reward alone; taken for a time limit, all that would
have followed. A log that does not say which it was answers another question, without a sign in any residual.
"""

from __future__ import annotations

import numpy as np

from gradientdice.log.sequence import is_over
from gradientdice.log.transitions import Transitions
from gradientdice.statistics.checks import Check, below

# The share of the episodes that stop for no recorded reason.
UNRECORDED = (0.02, 0.1)
# Fewer such episodes may be an interruption of the recording, and so may few lengths unless it is many of them.
FEWEST_EPISODES, FEWEST_LENGTHS, MANY = 5, 3, 0.2
# Any row after an end contradicts it.
AFTER_ENDS = (0.0, 0.0)
# Deviations by which the rewards of dropped rows may differ from those of others.
SURPRISE = (5.0, 5.0)
REMEDY = (
    "name the column of ends (columns={'terminated': …}), or say what last rows are: gd.load(…, "
    "episode_ends='terminated' or 'truncated')"
)


def unrecorded_ends_check(data: Transitions) -> Check | None:
    """Compare the share of episodes that stop for no recorded reason with its limits; None without episodes."""
    share = unrecorded_ends(data)
    if share is None:
        return None
    return below(
        "ends that are not recorded",
        share,
        *UNRECORDED,
        "share of the episodes that stop without a recorded end or time limit, after a number of rows that others of "
        "them exceed",
        REMEDY,
    )


def after_ends_check(data: Transitions) -> Check | None:
    """Count rows that follow an end within their episode; None where no episode in time order could have any."""
    if data.episodes is None or data.terminated is None or data.terminated.all() or not data.terminated.any():
        return None
    inside = data.terminated[:-1] & (data.episodes[1:] == data.episodes[:-1])
    # In rows of no order an end says nothing of the next row.
    share = float(inside.mean()) if inside.any() and data.time_order is not None else 0.0
    return below(
        "rows after the end of their episode",
        share,
        *AFTER_ENDS,
        "share of the rows whose episode ends with them and goes on in the next row",
        "give every episode a number of its own, or name the column that marks ends",
    )


def dropped_rows_check(data: Transitions) -> Check | None:
    """Compare the rewards of dropped rows with those of the other rows; None where none were dropped."""
    dropped = data.dropped_rows
    if dropped is None:
        return None
    return below(
        "rewards of rows that were dropped",
        dropped.surprise,
        *SURPRISE,
        f"in standard deviations of chance: {dropped.count:,} last rows were dropped, whose rewards average "
        f"{dropped.mean:.3g} where those of the other rows average {dropped.kept_mean:.3g}: outcomes may be lost with "
        "them",
        REMEDY,
        noise=1.0,
    )


def unrecorded_ends(data: Transitions) -> float | None:
    """The share of the episodes that stop at no recorded end and at no limit that they share.

    The longest of these episodes may all have reached a limit that nobody wrote down. None without episodes.
    """
    if data.episodes is None:
        return None
    # Rows that count 0 times show all the same where their episode ended.
    _, episode = np.unique(data.episodes, return_inverse=True)
    counts = np.bincount(episode, data.row_weights > 0) > 0
    length = np.bincount(episode)
    unmarked = counts & (np.bincount(episode, is_over(data)) == 0)
    early = length[unmarked][length[unmarked] < length[unmarked].max(initial=0)]
    share = len(early) / max(1, int(counts.sum()))
    few = len(early) < FEWEST_EPISODES or (len(np.unique(early)) < FEWEST_LENGTHS and share < MANY)
    return 0.0 if few else share
