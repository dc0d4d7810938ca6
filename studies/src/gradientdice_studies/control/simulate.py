"""Runs policies in the tasks' environments, side by side so that a policy works on batches: logs, and chains."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from gradientdice.log.transitions import Transitions
from gradientdice_studies.control.actors import draw
from gradientdice_studies.control.tasks import ControlPolicy, Task

# Environments side by side at most. In a log each has at least ten episodes, since its last one is cut.
BATCH, LEAST_EPISODES = 25, 10


@dataclass(eq=False)
class Batch:
    """Environments of one task, each in some state of its own.

    Attributes:
        task: what is simulated.
        environments: as many as the batch has.
        states: (batch, d) where each of them is.
    """

    task: Task
    environments: list[Any]
    states: np.ndarray = field(init=False)

    @classmethod
    def of(cls, task: Task, count: int) -> Batch:
        """So many environments, which `begin` puts to their starts."""
        return cls(task, [task.make() for _ in range(count)])

    def begin(self, seed: int | list[int]) -> None:
        """Puts all to a start, each with its own stream of random numbers."""
        seeds = np.random.SeedSequence(seed).generate_state(len(self.environments))
        starts = [env.reset(seed=int(own))[0] for env, own in zip(self.environments, seeds, strict=True)]
        self.states = np.asarray(starts, dtype=np.float64)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Next states, rewards and whether each has ended; the batch is then in the next states."""
        following = np.empty_like(self.states)
        rewards, ended = np.empty(len(actions)), np.empty(len(actions), dtype=bool)
        for row, (env, action) in enumerate(zip(self.environments, actions, strict=True)):
            following[row], reward, ended[row], _, _ = env.step(action)
            pay = self.task.pay
            rewards[row] = reward if pay is None else pay(following[row], reward, bool(ended[row]))
        self.states = following
        return following, rewards, ended

    def restart(self, which: np.ndarray) -> None:
        """Puts some of them back to a start."""
        self.states = self.states.copy()
        for row in np.flatnonzero(which):
            self.states[row] = self.environments[row].reset()[0]


def make_log(task: Task, rows: int, seed: int) -> Transitions:
    """A log of the behaviour: so many rows, in whole episodes but for the last ones, which are cut where it is full.

    Episodes that end are `terminated`, those cut by the task's time limit or by the end of the log `truncated`.
    """
    rng = np.random.default_rng([1, seed])
    count = min(BATCH, max(1, rows // (LEAST_EPISODES * task.limit)))
    batch = Batch.of(task, count)
    batch.begin(seed)
    steps = -(-rows // count)
    age, episode, episodes_so_far = np.zeros(count, dtype=int), np.arange(count), count
    columns: dict[str, list[np.ndarray]] = {}
    for step in range(steps):
        states, actions = batch.states, draw(task.behavior, batch.states, rng)
        following, rewards, ended = batch.step(actions)
        age += 1
        cut = ~ended & ((age >= task.limit) | (step == steps - 1))
        row = (states, actions, rewards, following, ended, cut, episode.copy())
        for name, values in zip(COLUMNS, row, strict=True):
            columns.setdefault(name, []).append(values)
        over = ended | cut
        batch.restart(over)
        age[over] = 0
        episode[over] = episodes_so_far + np.arange(int(over.sum()))
        episodes_so_far += int(over.sum())
    # One environment after the other, so that the rows of an episode follow each other.
    whole = {name: np.swapaxes(np.stack(values), 0, 1) for name, values in columns.items()}
    flat = {name: values.reshape(-1, *values.shape[2:])[:rows] for name, values in whole.items()}
    last = rows - 1
    flat["truncated"][last] = not flat["terminated"][last]
    return Transitions(**flat)


COLUMNS = ("states", "actions", "rewards", "next_states", "terminated", "truncated", "episodes")


@dataclass(frozen=True, eq=False)
class Chains:
    """Rewards of chains that start again when they end, and for no other reason.

    Attributes:
        rewards: (chains, steps).
        ended: (chains, steps) whether the chain starts again after the step.
    """

    rewards: Float[np.ndarray, "m t"]
    ended: Bool[np.ndarray, "m t"]


def run_chains(task: Task, policy: ControlPolicy, count: int, steps: int, seed: int) -> Chains:
    """So many chains of a policy, of so many steps each, some at a time: environments take long to make."""
    rng = np.random.default_rng([2, seed])
    batch = Batch.of(task, min(BATCH, count))
    size = len(batch.environments)
    groups = -(-count // size)
    rewards, ended = np.empty((groups, size, steps)), np.empty((groups, size, steps), dtype=bool)
    for group in range(groups):
        batch.begin([seed, group])
        for step in range(steps):
            _, rewards[group, :, step], ended[group, :, step] = batch.step(draw(policy, batch.states, rng))
            batch.restart(ended[group, :, step])
    return Chains(rewards.reshape(-1, steps)[:count], ended.reshape(-1, steps)[:count])
