"""Where the target's mass moves: means of coordinates, shares of states."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.statistics.footprint import movements


def test_coordinates_move_by_their_weighted_means(rng):
    states, weights, ratio = rng.normal(size=(300, 25)), rng.uniform(0.5, 2, 300), rng.uniform(0, 2, 300)
    data = gd.Transitions(states, np.zeros(300, dtype=int), np.zeros(300), states, weights=weights)
    moved = movements(data, ratio, weights)
    assert [move.where for move in moved] == [f"state[{k}], mean" for k in range(20)]
    for k, move in enumerate(moved):
        assert move.logged == pytest.approx(np.average(states[:, k], weights=weights))
        assert move.target == pytest.approx(np.average(states[:, k], weights=weights * ratio))


def test_states_of_a_table_are_in_the_order_of_their_change():
    states = np.array([0, 0, 1, 1, 2, 2])
    data = gd.Transitions(states, np.zeros(6, dtype=int), np.zeros(6), states)
    moved = movements(data, np.array([0.0, 0.0, 1.0, 1.0, 2.5, 1.5]), np.ones(6))
    assert {move.where for move in moved[:2]} == {"state 0", "state 2"} and moved[2].where == "state 1"
    assert [move.logged for move in moved] == pytest.approx([1 / 3] * 3)
    assert sorted(move.target for move in moved) == pytest.approx([0.0, 1 / 3, 2 / 3])
