"""Shared fixtures and problems."""

import numpy as np
import pytest

import gradientdice as gd

TARGET = np.tile([0.1, 0.9], (13, 1))
UNIFORM = np.full((13, 2), 1 / 26)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20200713)


@pytest.fixture(params=range(4))
def problem(request):
    """A random ergodic MDP, a target policy and a data distribution that covers it."""
    return random_problem(request.param)


def random_problem(seed: int, states: int = 5, actions: int = 2):
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(states), size=(states, actions))
    mdp = gd.mdp.TabularMDP(transition, rng.normal(size=(states, actions)), rng.dirichlet(np.ones(states)))
    target = rng.dirichlet(np.ones(actions), size=states)
    data_dist = rng.dirichlet(np.full(states * actions, 3.0)).reshape(states, actions)
    return mdp, target, data_dist
