"""The chains of the GradientDICE paper: Boyan's Chain in two variants, and the one-state hard example."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from gradientdice.base.arrays import as_floats, require_memory
from gradientdice.base.errors import InputError, require_choice, require_count, require_finite
from gradientdice.mdp.finite import TabularMDP

NUM_BOYAN_STATES = 13


def boyan_chain(variant: Literal["episodic", "continuing"]) -> TabularMDP:
    """Boyan's Chain with two actions (Zhang, Liu and Whiteson 2020, figure 5).

    From s_i, i ≥ 2, action 0 leads to s_{i−1} and action 1 to s_{i−2}; s_1 leads to s_0. In the episodic
    variant s_0 is absorbing; in the continuing one it leads to any state with equal probability. Rewards
    are Boyan's (1999): −3 a step, −2 from s_1, 0 from s_0; the paper's experiments do not use them.
    """
    require_choice("variant", variant, "episodic", "continuing")
    size = NUM_BOYAN_STATES
    transition = np.zeros((size, 2, size))
    for state in range(2, size):
        transition[state, 0, state - 1] = 1
        transition[state, 1, state - 2] = 1
    transition[1, :, 0] = 1
    if variant == "episodic":
        transition[0, :, 0] = 1
    else:
        transition[0, :, :] = 1 / size
    reward = np.full((size, 2), -3.0)
    reward[1], reward[0] = -2.0, 0.0
    return TabularMDP(transition, reward, np.full(size, 1 / size))


def boyan_features() -> Float[np.ndarray, "13 4"]:
    """Boyan's four state features: hat functions centred on s_12, s_8, s_4 and s_0."""
    states = np.arange(NUM_BOYAN_STATES)[:, None]
    return np.maximum(0, 1 - np.abs(states - np.array([12, 8, 4, 0])) / 4)


def pair_features(state_features: ArrayLike, num_actions: int) -> Float[np.ndarray, "SA Ak"]:
    """State features with an independent block of weights for each action, state-major."""
    rows, num_actions = as_floats("state_features", state_features), require_count("num_actions", num_actions)
    if rows.ndim != 2:
        raise InputError(f"state_features must have one row per state, not shape {rows.shape}.")
    require_finite("state_features", rows)
    require_memory("The features", *rows.shape, num_actions, num_actions, remedy="Take fewer actions.")
    return (
        np.kron(rows, np.eye(num_actions))
        .reshape(len(rows), num_actions, rows.shape[1], num_actions)
        .swapaxes(2, 3)
        .reshape(len(rows) * num_actions, -1)
    )


def single_state() -> TabularMDP:
    """The hard example for GenDICE: one state, two actions that both stay, reward 1 for the first."""
    return TabularMDP(np.ones((1, 2, 1)), np.array([[1.0, 0.0]]), np.ones(1))
