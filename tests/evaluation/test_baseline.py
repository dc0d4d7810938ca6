"""The behaviour's own value as a baseline."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.evaluation.baseline import AskedLog
from gradientdice.statistics.behavior import behavior_shares
from gradientdice.statistics.intervals import standard_error
from gradientdice.statistics.sources import ErrorSources
from problems import known, random_problem

BEHAVIOR = np.full((5, 2), 0.5)


def world() -> gd.mdp.TabularMDP:
    """Episodes begin in the state that pays least, so that what was cut is unlike what was seen."""
    mdp, _, _ = random_problem(3)
    return gd.mdp.TabularMDP(mdp.transition, mdp.reward + np.arange(5)[:, None], np.eye(5)[0])


def cut_log(seed: int, episodes: int = 300) -> gd.Transitions:
    """Episodes of one to eight steps, each cut at random."""
    data = world().rollout(BEHAVIOR, episodes, 8, np.random.default_rng(seed))
    lengths = np.random.default_rng(seed + 1000).integers(1, 9, episodes)
    number = known(data.episodes)
    step = np.arange(len(data)) - np.searchsorted(number, number)
    kept = step < lengths[number]
    return gd.Transitions(
        data.states[kept], data.actions[kept], data.rewards[kept], data.next_states[kept], episodes=number[kept]
    )


def side(data: gd.Transitions, discount: float):
    return known(AskedLog.of(gd.Problem(data, gd.TabularPolicy(BEHAVIOR))).behavior_side(discount).value).sources


def test_whole_episodes_are_taken_as_they_are():
    data = world().rollout(BEHAVIOR, 100, 100, np.random.default_rng(0))
    value, shares = known(behavior_shares(data, 0.9))
    found = side(data, 0.9)
    assert isinstance(found, ErrorSources)
    assert found.value == value and np.array_equal(found.units, shares) and found.room.sides(0.95) == (0, 0)


def test_episodes_of_any_length_are_continued():
    """What was seen alone is wrong by many standard errors."""
    truth = world().value(BEHAVIOR, 0.95)
    data = cut_log(0)
    value, _ = known(behavior_shares(data, 0.95))
    found = side(data, 0.95)
    error = standard_error(found.samples)
    assert abs(value - truth) > 5 * error and abs(found.value - truth) < 3 * error


def test_weights_count_as_copies_of_episodes_do():
    data = cut_log(0, episodes=40)
    number = known(data.episodes)
    twice = np.where(number % 2 == 0, 2.0, 1.0)
    rows = np.concatenate([np.arange(len(data)), np.flatnonzero(twice == 2)])
    labels = np.concatenate([number, number[twice == 2] + 100])
    copied = gd.Transitions(
        data.states[rows], data.actions[rows], data.rewards[rows], data.next_states[rows], episodes=labels
    )
    assert side(replace(data, weights=twice), 0.95).value == pytest.approx(side(copied, 0.95).value, abs=0.02)


def test_ends_are_not_continued():
    """Each episode ends after its first step, which pays 1: nothing is left, whatever the rows beside it say."""
    data = gd.Transitions([0] * 50, [0, 1] * 25, np.ones(50), [1] * 50, terminated=[True] * 50, episodes=np.arange(50))
    assert side(data, 0.9).value == pytest.approx(0.1)


def test_what_is_too_little_for_a_process_is_taken_as_seen():
    """On continuous states a single cut episode cannot be split into folds."""
    rng = np.random.default_rng(0)
    states = rng.normal(size=(11, 2))
    data = gd.Transitions(states[:-1], rng.normal(size=(10, 1)), states[:-1, 0], states[1:], episodes=[0] * 10)
    policy = gd.SamplingPolicy(lambda rows, draw: draw.normal(size=(len(rows), 1)))
    found = known(AskedLog.of(gd.Problem(data, policy)).behavior_side(0.99).value).sources
    assert found.value == known(behavior_shares(data, 0.99))[0] and found.room.misfit > 0


def test_without_starts_there_is_none_below_discount_one():
    data = gd.Transitions([0, 1, 0, 1], [0, 1, 1, 0], [0.0, 1.0, 0.5, 1.0], [1, 0, 1, 0])
    asked = AskedLog.of(gd.Problem(data, gd.TabularPolicy(np.full((2, 2), 0.5))))
    assert asked.behavior_side(0.9).value is None


@pytest.mark.slow
def test_intervals_of_the_continued_value_cover():
    truth = world().value(BEHAVIOR, 0.95)
    inside = 0
    for seed in range(200):
        found = side(cut_log(seed), 0.95)
        low, high = gd.SkewInterval().interval(found.value, found.samples, 0.95, 0)
        inside += low <= truth <= high
    assert 180 <= inside <= 199
