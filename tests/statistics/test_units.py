"""Independent units, and initial states that are alike."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.statistics.checks import Verdict
from gradientdice.statistics.units import units_check, unseen_starts


def lanes(rng, starts, rows=2_000):
    """Two states that are never left; the second pays 1, the first nothing."""
    states = rng.integers(2, size=rows)
    rewards = states + 0.5 * rng.normal(size=rows)
    return gd.Transitions(states, rng.integers(2, size=rows), rewards, states, initial_states=starts)


POLICY = gd.TabularPolicy(np.full((2, 2), 0.5))


@pytest.mark.parametrize(("count", "expected"), [(4, "DO_NOT_TRUST"), (12, "CAUTION"), (40, "TRUST")])
def test_units_are_counted(rng, count, expected):
    check = units_check([rng.normal(size=count)])
    assert check.verdict is Verdict[expected] and check.value == pytest.approx(count)


def test_a_kind_with_little_part_in_the_error_counts_little(rng):
    assert units_check([rng.normal(size=1_000), 0.001 * rng.normal(size=3)]).value > 900


def test_so_many_alike_leave_room_for_others():
    share = unseen_starts(5, 0.95)
    assert (1 - share) ** 5 == pytest.approx(0.05)


@pytest.mark.parametrize(("count", "expected"), [(1, "trust"), (2, "do not trust"), (20, "caution"), (30, "trust")])
def test_few_starts_that_are_alike_are_not_a_known_start(rng, count, expected):
    found = gd.evaluate(lanes(rng, [0] * count), POLICY, discount=0.9)
    assert str(found.verdict) == expected
    assert any("alike" in note for note in found.notes) == (expected != "trust")


def test_the_interval_has_room_for_the_starts_that_were_not_seen(rng):
    """Three draws of a start that is the better one with probability 0.25, all of them the worse one."""
    found = gd.evaluate(lanes(rng, [0, 0, 0]), POLICY, discount=0.9)
    one = gd.evaluate(lanes(np.random.default_rng(0), [0]), POLICY, discount=0.9)
    assert found.interval is not None and one.interval is not None
    assert found.interval[0] < 0.25 < found.interval[1] and one.interval[1] < 0.1
    # The better state is worth 1, and nothing is worse than the start.
    assert found.interval[1] - one.interval[1] == pytest.approx(unseen_starts(3, 0.95), abs=0.1)
    assert found.interval[0] == pytest.approx(one.interval[0], abs=0.1)
