"""ModelWin, where a model of three states is right, and ModelFail, where what is observed is not a state."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from gradientdice.base.arrays import as_numbers
from gradientdice.base.errors import InputError
from gradientdice.mdp.finite import TabularMDP, require_mdp
from gradientdice.mdp.planning import with_clock

Policies = tuple[Float[np.ndarray, "S 2"], Float[np.ndarray, "S 2"]]


def model_win_mdp(horizon: int | None = None) -> TabularMDP:
    """ModelWin: from the first state to a good or a bad one, and back.

    The first action leads to the good state, 1, with probability 0.4 and to the bad one, 2, with 0.6; the second action
    the other way round. Arriving in the good state pays 1, in the bad one −1; from either, both actions lead back to
    state 0 and pay nothing.

    Args:
        horizon: None for three states that go on for ever. A number, 20 in the paper, puts the time into the state:
            state = 3 · time + state, and `terminal` is 3 · horizon.

    References:
        Thomas and Brunskill 2016, Data-efficient off-policy policy evaluation.
    """
    transition = np.zeros((3, 2, 3))
    transition[0] = [[0, 0.4, 0.6], [0, 0.6, 0.4]]
    transition[1:, :, 0] = 1
    endless = TabularMDP(transition, np.array([[-0.2, 0.2], [0, 0], [0, 0]]), np.array([1.0, 0, 0]))
    return endless if horizon is None else with_clock(endless, horizon)


def model_win_policies(mdp: TabularMDP) -> Policies:
    """The behaviour takes the first action with probability 1 / (1 + e⁻¹) ≈ 0.73, the target the second."""
    return _opposites(mdp, 1 / (1 + np.exp(-1)))


def model_fail_mdp() -> TabularMDP:
    """ModelFail, with its states laid open: the first action leads up, to state 1, the second down, to state 2.

    The step from state 1 to the end, state 3, pays 1 and the step from state 2 pays −1, whatever the action; `terminal`
    is 3. In the paper nobody sees the states: `model_fail_observations` is what a log would hold.

    References:
        Thomas and Brunskill 2016, Data-efficient off-policy policy evaluation.
    """
    transition = np.zeros((4, 2, 4))
    transition[0, 0, 1] = transition[0, 1, 2] = 1
    transition[1:, :, 3] = 1
    return TabularMDP(transition, np.array([[0, 0], [1, 1], [-1, -1], [0, 0]]), np.array([1.0, 0, 0, 0]))


def model_fail_observations(states: ArrayLike) -> Int[np.ndarray, " n"]:
    """Observations of ModelFail's states: always 0."""
    seen = as_numbers("states", states)
    if seen.ndim != 1:
        raise InputError(f"states must have shape (n,), not {seen.shape}.")
    return np.zeros(len(seen), dtype=np.int64)


def model_fail_policies(mdp: TabularMDP) -> Policies:
    """The behaviour takes the first action with probability 1 / (1 + e⁻²) ≈ 0.88, the target the second."""
    return _opposites(mdp, 1 / (1 + np.exp(-2)))


def _opposites(mdp: TabularMDP, often: float) -> Policies:
    require_mdp(mdp)
    target = np.tile([1 - often, often], (mdp.num_states, 1))
    return target, target[:, ::-1].copy()
