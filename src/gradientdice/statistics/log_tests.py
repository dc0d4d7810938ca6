"""Tests of a log itself: whichever policies and estimators are asked, each is done once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from gradientdice.log.transitions import Transitions
from gradientdice.statistics.checks import Check
from gradientdice.statistics.copied import copied_rows
from gradientdice.statistics.gaps import gap_check
from gradientdice.statistics.late_actions import late_actions_check
from gradientdice.statistics.markov import MarkovTest
from gradientdice.statistics.recorded_ends import after_ends_check, dropped_rows_check, unrecorded_ends_check
from gradientdice.statistics.shifted import shifted_checks
from gradientdice.statistics.unlogged import Repeats


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
