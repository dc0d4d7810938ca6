"""Episodes of a Gymnasium environment, recorded by hand: what every reader of such a log is held against."""

from typing import Any

import numpy as np

import gradientdice as gd

NAMES = ("states", "actions", "rewards", "next_states", "terminated", "truncated", "episodes")


def roll(env: Any, episodes: int, seed: int = 0) -> gd.Transitions:
    """Random actions in `episodes` episodes; the same seed gives the same steps."""
    columns: dict[str, list[Any]] = {name: [] for name in NAMES}
    for episode, action, before, outcome in steps(env, episodes, seed):
        following, reward, terminated, truncated, _ = outcome
        row = (before, action, reward, following, terminated, truncated, episode)
        for name, value in zip(NAMES, row, strict=True):
            columns[name].append(np.array(value))
    arrays: dict[str, Any] = {name: np.array(values) for name, values in columns.items()}
    return gd.Transitions(**arrays)


def steps(env: Any, episodes: int, seed: int = 0):
    """Takes the steps: (episode, action, observation before it, what `step` returned)."""
    env.action_space.seed(seed)
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed + episode)
        over = False
        while not over:
            action = env.action_space.sample()
            outcome = env.step(action)
            yield episode, action, observation, outcome
            observation, over = outcome[0], outcome[2] or outcome[3]


def assert_same_log(found: gd.Transitions, expected: gd.Transitions, rows: Any = slice(None)) -> None:
    """The same numbers in every column, except next states after an end, which nobody uses."""
    for name in ("states", "actions", "rewards", "terminated", "truncated", "episodes"):
        one, other = getattr(found, name), getattr(expected, name)
        assert one is not None and other is not None, name
        np.testing.assert_array_equal(one, other[rows], err_msg=name)
    going_on = ~found.ended
    np.testing.assert_array_equal(found.next_states[going_on], expected.next_states[rows][going_on])
