"""The behaviour's own value from a scanned log, as `evaluation/baseline.py` has it for one in memory.

Where whole episodes show the behaviour's discounted rewards it is their mean. Where a table's log has no episodes, or
cuts them at discount 1, it is the value of the Markov reward process that the counts are without their actions. Where
time limits cut off a part that matters, what was cut is taken to be like what was seen; how far the mean differs from
the rewards of the episodes' second halves, in the sample, is the size of the error that this may make.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.default.automatic import Automatic
from gradientdice.evaluation.baseline import UNSEEN, CutEpisodes
from gradientdice.evaluation.interval import Intervals, room_beside
from gradientdice.evaluation.scan.questions import ScannedBehavior
from gradientdice.functions import Tabular
from gradientdice.log.scanning.passes import Sums
from gradientdice.policies import DiscretePolicy
from gradientdice.problem.problem import Problem
from gradientdice.problem.scan.asked import Asked
from gradientdice.problem.scan.process import without_actions
from gradientdice.statistics.log_tests import LogTests
from gradientdice.statistics.room import Room
from gradientdice.statistics.scan.scorers import ProcessScorer
from gradientdice.statistics.scan.seen import SeenBehavior
from gradientdice.statistics.units import KNOWN_STARTS


@dataclass(frozen=True, eq=False)
class CountedTable:
    """A table's counts, of which the behaviour's process is solved.

    Attributes:
        table: the table.
        sums: its counts.
    """

    table: Tabular
    sums: Sums


def knows_behavior(asked: Asked, sums: Sums, discount: float) -> bool:
    """Whether rows or episodes show what the behaviour earns at a discount."""
    columns = asked.log.columns
    if "behavior" not in sums:
        return False
    return discount == 1 or ("episodes" in columns and ("initial_states" in columns or asked.has_first_states))


def behavior_side(asked: Asked, discount: float, sums: Sums, counted: CountedTable | None) -> ScannedBehavior | None:
    """The behaviour's value at a discount; None where it is not known.

    Args:
        asked: the log.
        discount: γ.
        sums: of the first pass, with what the behaviour earned at this discount.
        counted: the table's counts; None for other functions, whose process is not solved.
    """
    if not knows_behavior(asked, sums, discount):
        return _attempted(lambda: _process_side(asked, discount, counted))
    seen = SeenBehavior.of(discount, sums)
    plain = ScannedBehavior(discount, seen.value, seen, Room())
    if discount == 1:
        cut = "episodes" in asked.log.columns and float(sums["totals"][4]) < float(sums["units"][0]) > 1
        return (_attempted(lambda: _process_side(asked, discount, counted)) if cut else None) or plain
    if seen.unseen <= UNSEEN:
        return plain
    return ScannedBehavior(
        discount, seen.value, seen, Room(misfit=seen.unseen * abs(_late_reward(asked, seen) - seen.value))
    )


def _late_reward(asked: Asked, seen: SeenBehavior) -> float:
    """The mean reward in the second halves of the sample's cut episodes."""
    sample = asked.log.sample
    cut = CutEpisodes.of(sample, seen.discount)
    return cut.late_reward(sample) if len(cut.places) else seen.value


def _process_side(asked: Asked, discount: float, counted: CountedTable | None) -> ScannedBehavior | None:
    """The value of the log's Markov reward process, with a table."""
    if counted is None:
        return None
    codes, log, merged = without_actions(counted.table, counted.sums)
    only = DiscretePolicy(lambda states: np.ones((len(states), 1)), 1)
    process = Problem(log, only, codes.table, asked.seed, progress=False)
    answer = Automatic(discount).answer(process)
    assert answer.influence is not None and answer.ratio is not None
    scorer = ProcessScorer(codes, log, answer.influence, answer.ratio, merged=merged)
    room = room_beside(
        LogTests(log, asked.seed), process, discount, answer, Intervals().confidence, _alike(counted.sums)
    )
    return ScannedBehavior(discount, answer.value, scorer, room)


def _alike(sums: Sums) -> int | None:
    """How many initial states there are, if they are few and the same; else None."""
    if len(sums.get("start_state", ())) != 1:
        return None
    count = round(float(sums["start_rows"].sum()))
    return count if 1 < count < KNOWN_STARTS else None


def _attempted(make: Callable[[], ScannedBehavior | None]) -> ScannedBehavior | None:
    """What is made; None where the log has too little for it."""
    try:
        return make()
    except InputError:
        return None
