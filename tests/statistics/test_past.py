"""What came before each step: runs end with episodes, at time limits, and where a row does not follow another."""

from typing import Any

import numpy as np

import gradientdice as gd
from gradientdice.statistics.past import BLOCK, WINDOW, Past
from problems import known, random_problem


def chain(states: list[int], **fields: Any) -> gd.Transitions:
    n = len(states) - 1
    return gd.Transitions(states[:-1], np.zeros(n, dtype=int), np.zeros(n), states[1:], initial_states=[0], **fields)


def test_runs_end_where_episodes_do_and_where_rows_do_not_follow():
    data = gd.Transitions(
        states=[0, 1, 2, 5, 6, 0, 1],
        actions=np.zeros(7, dtype=int),
        rewards=np.zeros(7),
        next_states=[1, 2, 3, 6, 7, 1, 2],
        episodes=[0, 0, 0, 0, 0, 1, 1],
    )
    past = known(Past.of(data))
    assert past.start.tolist() == [0, 0, 0, 3, 3, 5, 5]
    assert past.steps.tolist() == [0, 1, 2, 0, 1, 0, 1]
    assert past.before(np.arange(7)).tolist() == [0, 0, 1, 3, 3, 5, 5]


def test_without_episodes_a_time_limit_ends_a_run():
    truncated = np.array([False, False, True, False, False, False])
    assert known(Past.of(chain([0, 1, 2, 3, 4, 5, 6], truncated=truncated))).start.tolist() == [0, 0, 0, 3, 3, 3]


def test_interleaved_episodes_are_sorted():
    data = gd.Transitions([0, 5, 1, 6], np.zeros(4, dtype=int), np.zeros(4), [1, 6, 2, 7], episodes=[0, 1, 0, 1])
    assert known(Past.of(data)).rows.tolist() == [0, 2, 1, 3]


def test_independent_rows_have_no_past():
    mdp, _, _ = random_problem(0)
    assert Past.of(mdp.sample(2_000, np.full((5, 2), 0.1), np.random.default_rng(0))) is None


def test_means_look_back_over_the_window_of_the_own_run():
    values = np.arange(60.0)
    past = Past(np.arange(60), np.repeat([0, 30], 30))
    means = past.mean(values)
    assert means[0] == means[30] == 0
    assert np.isclose(means[33], values[30:33].mean() * np.sqrt(3))
    assert np.isclose(means[29], values[29 - WINDOW : 29].mean() * np.sqrt(WINDOW))


def test_of_a_long_log_blocks_are_looked_at():
    mdp, _, _ = random_problem(0)
    data = mdp.rollout(np.full((5, 2), 0.5), 1, 10_000, np.random.default_rng(0))
    past = known(Past.of(data, 4 * BLOCK))
    assert len(past.rows) == 4 * BLOCK and past.rows[-1] == len(data) - 1
    assert np.unique(past.start).tolist() == [0, BLOCK, 2 * BLOCK, 3 * BLOCK]
