"""Tests of a log itself, each done once whichever policies and estimators are asked.

Copies of rows look like more data and are none. Rows that were lost at random do no harm; rows that were filtered, for
rewards that looked like outliers or for steps that failed, take their rewards with them, and nothing in the rows that
are left shows it but the gaps. Taken for a termination, the last row of an episode is worth its reward alone; taken
for a time limit, all that would have followed: a log that does not say which it was answers another question, without
a sign in any residual.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gradientdice.log.sequence import breaks, is_over
from gradientdice.log.transitions import Transitions
from gradientdice.statistics.checks import Check, below
from gradientdice.statistics.late_actions import late_actions_check
from gradientdice.statistics.markov import MarkovTest
from gradientdice.statistics.shifted import shifted_checks
from gradientdice.statistics.unlogged import Repeats

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


@dataclass(eq=False)
class LogTests:
    """What tests of a log found; all answers from the log are given the same.

    Attributes:
        data: the log.
        seed: for whatever is random.
        counted: how the outcomes of pairs vary, for a log of counts, whose rows do not show it; else None.
    """

    data: Transitions
    seed: int
    counted: Repeats | None = None

    @cached_property
    def markov(self) -> MarkovTest:
        """Is the recorded state the state?"""
        return MarkovTest(self.data, self.seed)

    @cached_property
    def repeats(self) -> Repeats:
        """How the outcomes of a table's pairs vary."""
        return Repeats.of(self.data) if self.counted is None else self.counted

    @cached_property
    def next_states(self) -> list[Check]:
        """Are the next states those that followed?"""
        return shifted_checks(self.data)

    @cached_property
    def columns(self) -> list[Check]:
        """Do actions belong to their rows, and are rows missing?"""
        return _known(late_actions_check(self.data, self.seed), gap_check(self.data))

    @cached_property
    def ends(self) -> list[Check]:
        """Does the log say how its episodes end?"""
        return _known(unrecorded_ends_check(self.data), after_ends_check(self.data))

    @cached_property
    def dropped(self) -> list[Check]:
        """Were outcomes lost with rows that had to be dropped?"""
        return _known(dropped_rows_check(self.data))

    @cached_property
    def copies(self) -> list[Check]:
        """Are rows there several times?"""
        return copied_rows(self.data)


def _known(*checks: Check | None) -> list[Check]:
    return [check for check in checks if check is not None]
