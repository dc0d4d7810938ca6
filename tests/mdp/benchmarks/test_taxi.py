"""Taxi, against a simulator of its rules that knows nothing of states numbered or matrices."""

import numpy as np
import pytest

import gradientdice as gd

CORNERS = [(0, 0), (0, 4), (4, 0), (4, 4)]


COME, GO = (0.3, 0.05, 0.1, 0.2), (0.05, 0.1, 0.1, 0.05)


def number(row, column, waiting, destination):
    pattern = sum(2**corner for corner in waiting)
    return ((row * 5 + column) * 16 + pattern) * 5 + (4 if destination is None else destination)


def simulate(policy, steps, rng):
    """The rewards of one episode, by the rules."""
    row, column = rng.integers(5, size=2)
    waiting, destination = {corner for corner in range(4) if rng.random() < 0.5}, None
    rewards = []
    for _ in range(steps):
        action = rng.choice(6, p=policy[number(row, column, waiting, destination)])
        reward, here = -1, CORNERS.index((row, column)) if (row, column) in CORNERS else None
        if action == 0:
            row = min(row + 1, 4)
        elif action == 1:
            column = min(column + 1, 4)
        elif action == 2:
            row = max(row - 1, 0)
        elif action == 3:
            column = max(column - 1, 0)
        elif action == 4 and destination is None and here in waiting:
            waiting = waiting - {here}
            destination, reward = rng.choice([corner for corner in range(4) if corner != here]), 20
        elif action == 5 and destination is not None and here == destination:
            destination, reward = None, 20
        waiting = {
            corner
            for corner in range(4)
            if (rng.random() >= GO[corner] if corner in waiting else rng.random() < COME[corner])
        }
        rewards.append(reward)
    return np.array(rewards)


@pytest.mark.parametrize("which", [0, 1])
def test_the_rules_give_the_exact_value(which, rng):
    mdp = gd.mdp.taxi_world()
    policy = gd.mdp.taxi_policies(mdp)[which]
    weights = 0.1 * 0.9 ** np.arange(90)
    returns = np.array([weights @ simulate(policy, 90, rng) for _ in range(300)])
    assert abs(returns.mean() - mdp.value(policy, 0.9)) < 4 * returns.std() / np.sqrt(300) + 20 * 0.9**90


def test_pick_up_and_drop_off():
    mdp = gd.mdp.taxi_world()
    assert mdp.transition.shape == (12_000, 2000) and mdp.num_actions == 6
    pick_up = number(0, 4, {1}, None)
    assert mdp.reward[pick_up, 4] == 20 and mdp.reward[number(0, 4, {0, 2, 3}, None), 4] == -1
    assert mdp.reward[number(0, 4, {1}, 3), 4] == -1
    following = mdp.transition[[pick_up * 6 + 4]].toarray().ravel().reshape(25, 16, 5)
    assert following[4].sum() == pytest.approx(1)
    np.testing.assert_allclose(following[4].sum(axis=0), [1 / 3, 0, 1 / 3, 1 / 3, 0])
    # Nobody waits any more; none comes with probability 0.7 · 0.95 · 0.9 · 0.8.
    assert following[4, 0].sum() == pytest.approx(0.7 * 0.95 * 0.9 * 0.8)
    drop = number(4, 0, set(), 2)
    assert mdp.reward[drop, 5] == 20 and mdp.reward[number(4, 0, set(), 1), 5] == -1
    arrived = mdp.transition[[drop * 6 + 5]].toarray().ravel().reshape(25, 16, 5)
    assert arrived[20, :, 4].sum() == pytest.approx(1)
    assert (mdp.reward == 20).sum() == 4 * 8 + 4 * 16


@pytest.mark.parametrize("corner", range(4))
def test_passengers_come_and_go_at_each_corners_own_rate(corner):
    mdp = gd.mdp.taxi_world()
    waits = np.arange(16) >> corner & 1 == 1
    for present, expected in ((set(), COME[corner]), ({0, 1, 2, 3}, 1 - GO[corner])):
        following = mdp.transition[[number(2, 2, present, None) * 6]].toarray().ravel().reshape(25, 16, 5)
        # One square down, still empty.
        assert following[17, :, 4].sum() == pytest.approx(1)
        assert following[17, waits, 4].sum() == pytest.approx(expected)


def test_the_target_is_good_and_the_log_covers_it():
    mdp = gd.mdp.taxi_world()
    target, behavior = gd.mdp.taxi_policies(mdp)
    uniform = np.full((2000, 6), 1 / 6)
    assert mdp.value(target, 1.0) > mdp.value(behavior, 1.0) > mdp.value(uniform, 1.0)
    assert mdp.ratio(target, 1.0, mdp.occupancy(behavior, 1.0)).max() < 50
