import numpy as np

import gradientdice as gd
from gradientdice.statistics.footprint import CELLS, state_map


def log_of(states):
    n = len(states)
    return gd.Transitions(states, np.zeros(n, int), np.zeros(n), states)


def shares(mass):
    return mass / mass.sum()


def test_the_coordinates_that_differ_most_are_chosen():
    rng = np.random.default_rng(0)
    states = rng.normal(size=(5000, 5))
    states[:, 4] = states[:, 2] + 0.01 * rng.normal(size=5000)  # shows what 2 shows
    states[:, 0] = 3.0  # does not vary
    target = shares(np.exp(0.8 * states[:, 2] + 0.4 * states[:, 1]))
    found = state_map(log_of(states), np.full(5000, 1 / 5000), target)
    assert found is not None and found.columns[0] in (2, 4) and found.columns[1] == 1
    assert found.logged.shape == found.target.shape == (CELLS, CELLS)
    np.testing.assert_allclose([found.logged.sum(), found.target.sum()], 1)
    # The target is further up on the first coordinate.
    places = np.arange(CELLS)
    assert places @ found.target.sum(1) > places @ found.logged.sum(1) + 2


def test_a_far_outlier_does_not_shrink_the_map():
    states = np.random.default_rng(0).normal(size=(2000, 2))
    states[0] = 1e6
    found = state_map(log_of(states), np.full(2000, 1 / 2000), np.full(2000, 1 / 2000))
    assert found is not None and max(edges[-1] for edges in found.edges) < 5
    np.testing.assert_allclose(found.logged.sum(), 1)


def test_one_coordinate_and_none():
    even = np.full(100, 0.01)
    line = state_map(log_of(np.linspace(0, 1, 100)[:, None]), even, even)
    assert line is not None and line.columns == (0,) and line.logged.shape == (CELLS,)
    assert state_map(log_of(np.ones((100, 2))), even, even) is None
    assert state_map(log_of(np.arange(100)), even, even) is None
