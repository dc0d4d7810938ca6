"""The two protocols under which Reacher is evaluated.

"paper": the log as its text describes it. Below discount 1 the truth is the discounted return of 50-step episodes; at
discount 1 it is their mean reward, although it is not the average reward of the chain that the log shows: nothing in
(s, a, s') says that an episode is cut after 50 steps.

"corrected": a time limit is not an end, so that below discount 1 the truth is that of episodes that continue. At
discount 1 the chain restarts after 50 steps, so that it has a stationary distribution; the step count is part of the
state, so that it is a Markov chain. In both protocols the initial states are those of the log.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import numpy as np

from gradientdice.log.transitions import Transitions
from gradientdice_studies.reacher.environment import HORIZON

DISCOUNTS = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
PROTOCOLS = ("paper", "corrected")


def with_restarts(data: Transitions) -> Transitions:
    """The log of the chain that restarts after 50 steps, with the step count in its state."""
    steps = np.tile(np.arange(HORIZON), len(data) // HORIZON)[:, None] / HORIZON
    return Transitions(
        np.concatenate([data.states, steps], axis=1),
        data.actions,
        data.rewards,
        np.concatenate([data.next_states, steps + 1 / HORIZON], axis=1),
        terminated=steps[:, 0] > 1 - 1.5 / HORIZON,
        episodes=data.episodes,
    )


def truth(protocol: str) -> dict[float, tuple[float, float]]:
    """Discount -> the target's value and its standard error, by Monte Carlo (the module `truth` makes them)."""
    return {float(discount): (value, error) for discount, (value, error) in _stored()[protocol].items()}


def truth_episodes() -> int:
    """The number of episodes behind these values."""
    return int(_stored()["episodes"])


def _stored() -> dict[str, Any]:
    return json.loads(files("gradientdice_studies.reacher").joinpath("data/truth.json").read_text())
