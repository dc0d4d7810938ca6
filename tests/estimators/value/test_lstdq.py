"""LSTDQ against the solution of its own equations, written again in NumPy."""

import numpy as np
import pytest

import gradientdice as gd
from problems import random_problem


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.9, 1.0])
def test_solves_its_equations(discount):
    mdp, target, data_dist = random_problem(1)
    data = mdp.sample(3000, data_dist, np.random.default_rng(0))
    x = np.eye(10)[data.states * 2 + data.actions]
    following = (np.eye(5)[data.next_states][:, :, None] * target[None]).reshape(len(data), -1)
    start = (np.eye(5)[data.initial_states][:, :, None] * target[None]).reshape(len(data), -1).mean(axis=0)
    if discount < 1:
        theta = np.linalg.solve(x.T @ (x - discount * following), x.T @ data.rewards)
        value = (1 - discount) * start @ theta
    else:
        system = np.block([[x.T @ (x - following), x.sum(axis=0)[:, None]], [np.ones((1, 10)), np.zeros((1, 1))]])
        value = np.linalg.solve(system, np.append(x.T @ data.rewards, 0.0))[-1]
    estimate = gd.evaluate(data, gd.TabularPolicy(target), gd.LSTDQ(discount))
    assert estimate.value == pytest.approx(value, rel=1e-10)
    assert np.mean(estimate.ratio * data.rewards) == pytest.approx(value, rel=1e-10)
