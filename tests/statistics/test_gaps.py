"""Rows that are missing from episodes are seen."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.log.split import some_rows
from gradientdice.statistics.log_tests import gap_check
from problems import known


def chain(episodes=20, steps=30):
    step = np.tile(np.arange(steps), episodes)
    return gd.Transitions(
        step,
        step % 2,
        np.ones(len(step)),
        step + 1,
        episodes=np.repeat(np.arange(episodes), steps),
        truncated=step == steps - 1,
    )


def test_a_whole_log_has_none():
    check = known(gap_check(chain()))
    assert check.value == 0 and check.verdict is gd.Verdict.TRUST


def test_each_row_that_is_missing_inside_an_episode_is_a_gap():
    data = chain()
    rows = np.ones(len(data), dtype=bool)
    rows[[5, 40, 41, 100]] = False  # 40 and 41 are one gap
    check = known(gap_check(some_rows(data, np.flatnonzero(rows))))
    assert check.value == pytest.approx(3 / (rows.sum() - 20))
    assert check.verdict is gd.Verdict.CAUTION and "missing" in check.reason


def test_rows_at_the_ends_leave_no_gap_and_logs_without_episodes_have_no_check():
    data = chain()
    first_and_last = np.isin(data.states, [0, 29])
    assert known(gap_check(some_rows(data, np.flatnonzero(~first_and_last)))).value == 0
    assert gap_check(replace(data, episodes=None)) is None
