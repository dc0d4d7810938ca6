"""An episode's undiscounted total, in the two ways that the README shows."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice_studies.coverage.problems import problems
from problems import known


@pytest.fixture(scope="module")
def grid():
    problem = problems()["ending, grid 4×4"]()
    k, mdp = problem.terminal, problem.mdp
    step = np.einsum("sa,sat->st", problem.target[:k], mdp.transition[:k, :, :k])
    reward = np.sum(problem.target[:k] * mdp.reward[:k], axis=1)
    total = float(mdp.initial[:k] @ np.linalg.solve(np.eye(k) - step, reward))
    # Long episodes are not cut here: a time limit would be no end.
    data = problem.trajectories(20_000, np.random.default_rng(3))
    return data, gd.TabularPolicy(problem.target[:k]), total


def test_a_discount_near_one(grid):
    data, policy, total = grid
    estimate = gd.evaluate(data, policy, discount=0.9999)
    low, high = (end / (1 - 0.9999) for end in known(estimate.interval))
    assert known(estimate.total) == pytest.approx(total, rel=0.1) and low < total < high


def test_the_average_reward_over_the_rate_of_ends(grid):
    data, policy, total = grid
    reward = gd.evaluate(data, policy, discount=1)
    ends = gd.evaluate(replace(data, rewards=data.ended.astype(float)), policy, discount=1)
    assert reward.value / ends.value == pytest.approx(total, rel=0.1)
    near = gd.evaluate(data, policy, discount=0.9999)
    assert reward.value / ends.value == pytest.approx(known(near.total), rel=0.02)
