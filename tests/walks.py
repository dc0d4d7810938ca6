"""A log of random walks, by hand, as the columns of other programs: what every reader of such columns is held to."""

from typing import Any

import numpy as np

import gradientdice as gd
from problems import known

EPISODES, STEPS = 12, 8


def walk(seed: int = 0) -> dict[str, Any]:
    """Episodes in two dimensions; every third is cut by a time limit, the others end."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(EPISODES, STEPS + 1, 2)).cumsum(axis=1).astype(np.float32)
    last = np.tile(np.arange(STEPS) == STEPS - 1, EPISODES)
    number = np.repeat(np.arange(EPISODES), STEPS)
    return {
        "observations": states[:, :-1].reshape(-1, 2),
        "actions": rng.integers(3, size=EPISODES * STEPS),
        "rewards": rng.normal(size=EPISODES * STEPS),
        "next_observations": states[:, 1:].reshape(-1, 2),
        "terminals": last & (number % 3 != 0),
        "timeouts": last & (number % 3 == 0),
        "episode_id": number,
    }


def by_hand(log: dict[str, Any]) -> gd.Transitions:
    return gd.Transitions(
        log["observations"], log["actions"], log["rewards"], log["next_observations"], terminated=log["terminals"],
        truncated=log["timeouts"], episodes=log["episode_id"],
    )  # fmt: skip


def assert_same(found: gd.Transitions, expected: gd.Transitions, rows: Any = slice(None)) -> None:
    for name in ("states", "actions", "rewards", "terminated", "episodes"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name)[rows], err_msg=name)
    going_on = ~known(found.terminated)
    np.testing.assert_array_equal(found.next_states[going_on], expected.next_states[rows][going_on])
