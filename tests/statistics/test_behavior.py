"""The behaviour's own value at the same discount."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.statistics.behavior import behavior_value
from gradientdice_studies.coverage.problems import problems
from problems import known


@pytest.mark.parametrize(
    ("name", "discount"), [("random 5×2", 0.8), ("ending, random 6×2", 0.95), ("maintenance", 0.8)]
)
def test_it_is_the_behaviours_value(name, discount):
    problem = problems()[name]()
    truth = replace(problem, target=problem.behavior).truth(discount)
    inside = 0
    for seed in range(40):
        found = known(behavior_value(problem.trajectories(2000, np.random.default_rng(seed)), discount, 0.95))
        low, high = known(found.interval)
        inside += low <= truth <= high
        assert found.unseen < 0.05
    assert inside >= 34


def test_by_hand():
    """One episode ends after two steps, one is cut after one: it shows half of its discounted steps."""
    data = gd.Transitions(
        [0, 1, 2], [0, 0, 0], [1.0, 2.0, 4.0], [1, 0, 5], terminated=[False, True, False], episodes=[7, 7, 3]
    )
    found = known(behavior_value(data, 0.5, 0.9))
    assert found.value == pytest.approx((0.5 * 4 + 0.5 * 1 + 0.25 * 2) / 1.5)
    assert found.unseen == pytest.approx(0.25)
    weighted = gd.Transitions(
        *(data.states, data.actions, data.rewards, data.next_states),
        terminated=data.terminated,
        episodes=data.episodes,
        weights=[3, 3, 1],
    )
    assert known(behavior_value(weighted, 0.5, 0.9)).value == pytest.approx((0.5 * 4 + 3 * (0.5 + 0.5)) / 3.5)
    assert known(behavior_value(data, 1.0, 0.9)).value == pytest.approx(7 / 3)


def test_rows_without_episodes_have_a_mean_but_no_discounted_value():
    data = gd.Transitions([0, 1, 2], [0, 0, 0], [1.0, 2.0, 6.0], [1, 2, 0], weights=[1, 1, 2], initial_states=[0])
    assert behavior_value(data, 0.9, 0.95) is None
    assert known(behavior_value(data, 1.0, 0.95)).value == pytest.approx(15 / 4)
