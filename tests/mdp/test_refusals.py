"""Functions over known MDPs refuse by name what they are not for; value iteration that would never end is refused."""

from typing import Any

import numpy as np
import pytest

import gradientdice as gd

# The arguments are wrong on purpose.
mdp: Any = gd.mdp
CHAIN = gd.mdp.boyan_chain("episodic")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mdp.optimal_q(CHAIN, 0.9, tolerance=0.0), "tolerance must lie in"),
        (lambda: mdp.optimal_q(CHAIN, 0.9, tolerance=float("nan")), "tolerance must lie in"),
        (lambda: mdp.optimal_q(3, 0.9), "mdp must be a TabularMDP or SparseMDP"),
        (lambda: mdp.with_clock(mdp.taxi_world(), 3), "mdp must be a TabularMDP"),
        (lambda: mdp.with_clock(CHAIN, 10**9), "Take a shorter horizon"),
        (lambda: mdp.grid_walk(10**6), "Take a shorter side"),
        (lambda: mdp.grid_walk_policies(CHAIN), "side² states, not 13"),
        (lambda: mdp.mountain_car(900, 900), "Take fewer positions"),
        (lambda: mdp.mountain_car(10**6), "at most 1,000"),
        (lambda: mdp.offline_page_rank(10**12), "Take fewer pages"),
        (lambda: mdp.softmax_policy([1.0, 2.0], 1.0), "one row per state and one column per action"),
        (lambda: mdp.boyan_chain(np.zeros(2)), "variant must be"),
        (lambda: mdp.frozen_lake([4]), "size must be a whole number"),
        (lambda: mdp.threshold_policy(3, 8, 2.0), "slack must lie in"),
        (lambda: mdp.SparseMDP([["a"]], [[0.0]], [1.0]), "transition must hold numbers"),
        (lambda: mdp.SparseMDP(None, [[0.0]], [1.0]), "transition is None"),
    ],
)
def test_refusals(call: Any, words):
    with pytest.raises(gd.InputError, match=words):
        call()
