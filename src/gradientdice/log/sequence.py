"""Do the rows of an episode follow each other in time?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Int

if TYPE_CHECKING:
    from gradientdice.log.transitions import Transitions

Rows = Int[np.ndarray, " m"]

# So many steps, evenly spaced, tell whether a log is in order.
LOOKED_AT = 10_000
# Rows in order break far less often than by chance, even if each is there twice or thrice; shuffled ones as often.
BY_CHANCE = 0.75


def breaks(data: Transitions, before: Rows, after: Rows) -> Bool[np.ndarray, " m"]:
    """Whether each row of `after` begins elsewhere than where that of `before` leads.

    Numbers with a fraction may have been rounded differently: they differ from a hundredth of the states' spread on.
    """
    following, states = data.next_states[before], data.states[after]
    if states.dtype.kind in "iu" and following.dtype.kind in "iu":
        apart = following != states
    else:
        following, states = following.astype(np.float64), states.astype(np.float64)
        apart = np.abs(following - states) > 0.01 * states.std(axis=0) + 1e-5 * np.abs(states)
    return apart.reshape(len(before), -1).any(axis=1)


def time_order(data: Transitions) -> Rows | None:
    """The rows, episode after episode, each in time order; None if they do not follow each other.

    A log without episodes is taken for one run, cut where a row does not follow the one before it. Where the rows of
    episodes do not follow each other, their first rows need not be starts.
    """
    if data.episodes is None:
        order, run = np.arange(len(data)), np.zeros(len(data), dtype=np.int64)
    else:
        order, run = np.argsort(data.episodes, kind="stable"), data.episodes
    return order if _follow_each_other(data, order, run) else None


def follows_in_time(data: Transitions, order: Rows) -> Bool[np.ndarray, " steps"]:
    """Whether each of these rows but the first is the next step of the one before it."""
    before, after = order[:-1], order[1:]
    follows = ~is_over(data)[before]
    if data.episodes is not None:
        follows &= data.episodes[before] == data.episodes[after]
    return follows & ~breaks(data, before, after)


def is_over(data: Transitions) -> Bool[np.ndarray, " n"]:
    """Whether the episode is over after each row, by its end or by a time limit."""
    over = np.zeros(len(data), dtype=bool)
    for flag in (data.terminated, data.truncated):
        over |= False if flag is None else flag
    return over


def _follow_each_other(data: Transitions, order: Rows, run: np.ndarray) -> bool:
    """Whether the rows of each run, in this order, break less often than by chance.

    In a small or slow chain some rows seem to follow each other by chance, and so the breaks are counted against those
    between rows of a run that are picked at random.
    """
    _, index, length = np.unique(run[order], return_inverse=True, return_counts=True)
    steps = np.flatnonzero((index[:-1] == index[1:]) & ~is_over(data)[order[:-1]])
    if not len(steps):
        return True
    steps = steps[np.linspace(0, len(steps) - 1, min(LOOKED_AT, len(steps))).astype(np.int64)]
    first, count = (np.cumsum(length) - length)[index[steps]], length[index[steps]]
    other = order[first + (np.random.default_rng(0).random(len(steps)) * count).astype(np.int64)]
    found, chance = (breaks(data, order[steps], rows).mean() for rows in (order[steps + 1], other))
    return bool(found <= BY_CHANCE * chance)
