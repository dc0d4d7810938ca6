"""Baird's counterexample, on which off-policy TD with linear features diverges."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from gradientdice.mdp.finite import TabularMDP, require_mdp

DASHED, SOLID = 0, 1


def baird_star(reward: ArrayLike | None = None) -> TabularMDP:
    """Seven states, from all of which DASHED leads to one of the first six at random and SOLID to the seventh.

    The first state is uniform. The rewards are 0 in the original, so that every value is 0; give a (7, 2) array for a
    truth that is not.

    References:
        Baird 1995, Residual algorithms; with these actions, Sutton and Barto 2018, section 11.2.
    """
    transition = np.zeros((7, 2, 7))
    transition[:, DASHED, :6] = 1 / 6
    transition[:, SOLID, 6] = 1
    return TabularMDP(transition, np.zeros((7, 2)) if reward is None else reward, np.full(7, 1 / 7))


def baird_features() -> Float[np.ndarray, "7 8"]:
    """Eight features: the first six states have 2 of their own and 1 shared, the last 1 of its own and 2 shared.

    Seven states in eight dimensions: every value function can be represented, and still TD diverges.
    """
    features = np.hstack([2 * np.eye(7), np.ones((7, 1))])
    features[6] = [0, 0, 0, 0, 0, 0, 1, 2]
    return features


def baird_policies(mdp: TabularMDP) -> tuple[Float[np.ndarray, "7 2"], Float[np.ndarray, "7 2"]]:
    """The target always takes SOLID; the behaviour takes DASHED six times in seven, so that it visits all alike."""
    require_mdp(mdp)
    states = mdp.num_states
    return np.tile([0.0, 1.0], (states, 1)), np.tile([6 / 7, 1 / 7], (states, 1))
