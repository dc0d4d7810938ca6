"""A value is a mean of rewards."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.statistics.checks import Verdict
from gradientdice.statistics.possible import PossibleRange


def log(rewards, weights=None, terminated=None):
    n = len(rewards)
    return gd.Transitions(np.zeros(n, int), np.zeros(n, int), rewards, np.zeros(n, int), initial_states=[0],
                          weights=weights, terminated=terminated)  # fmt: skip


def test_the_range_is_that_of_the_rewards_and_of_the_nothing_after_an_end():
    rewards, ended = [1.0, 2.0, 3.0], [False, False, True]
    assert PossibleRange.of(log(rewards), 0.9) == PossibleRange(1.0, 3.0)
    assert PossibleRange.of(log(rewards, terminated=ended), 0.9) == PossibleRange(0.0, 3.0)
    assert PossibleRange.of(log(rewards, terminated=ended), 1.0) == PossibleRange(1.0, 3.0), "there it restarts"


def test_rows_of_weight_zero_do_not_count():
    weighted = log([1.0, 2.0, 30.0], [1.0, 1.0, 0.0], [False, False, True])
    assert PossibleRange.of(weighted, 0.9) == PossibleRange(1.0, 2.0)


def test_what_is_outside_is_cut_and_what_rounding_put_there_is_not():
    possible = PossibleRange(0.0, 2.0)
    assert possible.cut(2.5) == 2.0 and possible.cut(-1.0) == 0.0 and possible.cut(1.3) == 1.3
    assert possible.cut(2 + 1e-12) == 2 + 1e-12
    assert possible.cut_interval((-1.0, 1.0)) == (0.0, 1.0) and possible.cut_interval((2.5, 3.0)) == (2.0, 2.0)
    assert possible.check(1.0) is None and possible.check(2 + 1e-12) is None
    check = possible.check(2.5)
    assert check is not None and check.verdict is Verdict.DO_NOT_TRUST and check.value == pytest.approx(0.5)
    assert "2.5" in check.reason and "what would help" in check.reason
