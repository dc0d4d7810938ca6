"""Finite horizons: the time becomes part of the state."""

from __future__ import annotations

import numpy as np

from gradientdice.base.arrays import require_memory
from gradientdice.base.errors import require_count
from gradientdice.mdp.finite import require_mdp
from gradientdice.mdp.tabular import TabularMDP


def with_clock(mdp: TabularMDP, horizon: int) -> TabularMDP:
    """The same MDP for `horizon` steps, then an end: state = time · S + state, and `terminal` is horizon · S.

    As γ nears 1, value / (1−γ) nears an episode's expected sum of rewards. At γ = 1 itself only the end is left, which
    pays nothing.
    """
    require_mdp(mdp, TabularMDP)
    horizon, states, actions = require_count("horizon", horizon), mdp.num_states, mdp.num_actions
    size = horizon * states + 1
    require_memory("The transitions", size, actions, size, remedy="Take a shorter horizon.")
    transition, reward, initial = np.zeros((size, actions, size)), np.zeros((size, actions)), np.zeros(size)
    for time in range(horizon):
        now, later = slice(time * states, (time + 1) * states), slice((time + 1) * states, (time + 2) * states)
        reward[now] = mdp.reward
        if time < horizon - 1:
            transition[now, :, later] = mdp.transition
    transition[-1 - states :, :, -1] = 1
    initial[:states] = mdp.initial
    return TabularMDP(transition, reward, initial)
