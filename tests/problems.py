"""Small problems that several tests use, and `known` for results that may be None."""

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pytest

import gradientdice as gd
from gradientdice.evaluation.registry import ESTIMATORS, UNLISTED
from gradientdice.log.split import some_rows
from gradientdice.statistics.intervals import independent_shares

T = TypeVar("T")


EVERY: dict[str, Any] = {**ESTIMATORS, "automatic": UNLISTED["automatic"]}
# Estimators that refuse tables, which most tests of all estimators have.
CONTINUOUS: dict[str, Any] = {name: kind for name, kind in UNLISTED.items() if name not in EVERY}


def made(name: str, discount: float) -> Any:
    """The estimator of this name, with its own defaults."""
    return {**EVERY, **CONTINUOUS}[name](discount)


def by_estimator(table: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """The rows of `compare`, each by the name of its estimator."""
    return {row["estimator"]: row for row in table.to_dict("records")}


def covers(answer: gd.Answer, data: gd.Transitions, truth: float) -> bool:
    """Whether the 95% interval of an answer has a number in it."""
    assert answer.influence is not None
    low, high = gd.NormalInterval().interval(answer.value, independent_shares(answer.influence, data), 0.95, 0)
    return low < truth < high


def known(value: T | None) -> T:
    """A result that is there."""
    assert value is not None
    return value


TARGET = np.tile([0.1, 0.9], (13, 1))


UNIFORM = np.full((13, 2), 1 / 26)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20200713)


def random_problem(seed: int, states: int = 5, actions: int = 2):
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(states), size=(states, actions))
    mdp = gd.mdp.TabularMDP(transition, rng.normal(size=(states, actions)), rng.dirichlet(np.ones(states)))
    target = rng.dirichlet(np.ones(actions), size=states)
    data_dist = rng.dirichlet(np.full(states * actions, 3.0)).reshape(states, actions)
    return mdp, target, data_dist


def loop(seed=0, states=3):
    """A chain without end, a target and a behaviour: episodes are cut by a time limit."""
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(states), size=(states, 2))
    mdp = gd.mdp.TabularMDP(transition, rng.normal(size=(states, 2)), rng.dirichlet(np.ones(states)))
    target = rng.dirichlet(np.ones(2), size=states)
    return mdp, target, 0.5 * target + 0.25, ()


def ladder(seed=0, rungs=3):
    """States 0, 1, …; each step goes up by 1 or 2, or to the end, the last state: over after `rungs` steps at most."""
    rng = np.random.default_rng(seed + 10)
    states = rungs + 1
    transition = np.zeros((states, 2, states))
    for state in range(rungs):
        for action in range(2):
            reached = [state + 1, min(state + 2, rungs), rungs]
            np.add.at(transition[state, action], reached, rng.dirichlet(np.ones(3)))
    transition[rungs, :, rungs] = 1
    reward = rng.normal(size=(states, 2))
    reward[rungs] = 0
    initial = np.append(rng.dirichlet(np.full(rungs, 5.0)), 0.0)
    target = rng.dirichlet(np.full(2, 3.0), size=states)
    return gd.mdp.TabularMDP(transition, reward, initial), target, 0.5 * target + 0.25, (rungs,)


def leak(seed=0):
    """Three states that lead to each other or to the end: some episodes end, others are cut."""
    mdp, target, behavior, _ = loop(seed + 20)
    transition, reward = np.zeros((4, 2, 4)), np.zeros((4, 2))
    transition[:3, :, :3], transition[:3, :, 3], transition[3, :, 3] = 0.7 * mdp.transition, 0.3, 1
    reward[:3] = mdp.reward
    rows = np.full((1, 2), 0.5)
    wider = gd.mdp.TabularMDP(transition, reward, np.append(mdp.initial, 0.0))
    return wider, np.vstack([target, rows]), np.vstack([behavior, rows]), (3,)


def single(seed=0):
    """One state, two actions."""
    mdp = gd.mdp.TabularMDP(np.ones((1, 2, 1)), np.array([[1.0, -0.5]]), np.ones(1))
    return mdp, np.array([[0.2, 0.8]]), np.array([[0.6, 0.4]]), ()


def rolled(problem, episodes, horizon, seed):
    """Episodes of the behaviour, over where they reach a terminal state."""
    mdp, _, behavior, terminal = problem
    data = mdp.rollout(behavior, episodes, horizon, np.random.default_rng(seed))
    if not terminal:
        return data
    ended = np.isin(data.next_states, terminal)
    keep = ~np.isin(data.states, terminal)
    return take(replace(data, terminated=ended, truncated=data.truncated & ~ended), np.flatnonzero(keep))


def take(data, rows, **changes):
    """Some rows of a log, in this order."""
    return replace(some_rows(data, np.asarray(rows)), **changes)


def episodic_problem(seed: int):
    """Six states; from each pair the episode ends with a known probability. Value by an explicit absorbing state."""
    rng = np.random.default_rng(seed)
    ends = rng.uniform(0.05, 0.4, size=(6, 2))
    inner = rng.dirichlet(np.ones(6), size=(6, 2)) * (1 - ends)[..., None]
    transition = np.zeros((7, 2, 7))
    transition[:6, :, :6], transition[:6, :, 6], transition[6, :, 6] = inner, ends, 1
    reward = np.zeros((7, 2))
    reward[:6] = rng.normal(size=(6, 2))
    initial = np.append(rng.dirichlet(np.ones(6)), 0)
    target = np.vstack([rng.dirichlet(np.ones(2), size=6), [0.5, 0.5]])
    return gd.mdp.TabularMDP(transition, reward, initial), target, transition


def population_log(mdp):
    """A log that is the population: every (s, a, s') is a row with its probability as weight."""
    rows = [(s, a, t) for s in range(6) for a in range(2) for t in range(7)]
    s, a, t = np.array(rows).T
    weights = mdp.transition[s, a, t] / 12
    starts = np.repeat(np.arange(6), np.round(mdp.initial[:6] * 1_000_000).astype(int))
    return gd.Transitions(
        s, a, mdp.reward[s, a], np.where(t == 6, 0, t), initial_states=starts, terminated=t == 6, weights=weights
    )


def linear_gaussian(n, rng, gain=0.6):
    """s' = 0.8s + a + noise under a = −gain·s + noise, reward −s²: the discounted value is a geometric series."""
    s = rng.normal(0, 1.5, size=n)
    a = -0.3 * s + rng.normal(size=n)
    following = 0.8 * s + a + 0.5 * rng.normal(size=n)
    starts = rng.normal(1.0, 0.5, size=2000)
    data = gd.Transitions(s[:, None], a[:, None], -(s**2), following[:, None], starts[:, None])
    policy = gd.SamplingPolicy(lambda states, rng: -gain * states + 0.2 * rng.normal(size=states.shape))
    square, noise, total, weight = 1.25, 0.25 + 0.04, 0.0, 0.1
    for _ in range(400):
        total -= weight * square
        square, weight = (0.8 - gain) ** 2 * square + noise, 0.9 * weight
    return data, policy, total


def log_of(kind, seed=0, rows=600):
    mdp, target, data_dist = random_problem(seed)
    rng = np.random.default_rng(seed)
    data = mdp.sample(rows, data_dist, rng)
    if kind == "ending":
        data = replace(data, terminated=rng.random(rows) < 0.2)
    if kind == "episodes":
        data = mdp.rollout(np.full((5, 2), 0.5), rows // 6, 6, rng)
        data = replace(data, initial_states=None, truncated=None, terminated=np.arange(rows) % 6 == 5)
    if kind == "weighted":
        data = replace(data, weights=rng.integers(1, 4, size=rows).astype(float))
    return data, gd.TabularPolicy(target)


def linear_system(seed, rows=1200, dimension=4):
    """A stable linear system in four dimensions, logged in episodes, with a policy that acts on it a little more."""
    rng = np.random.default_rng(seed)
    turn = 0.9 * np.linalg.qr(rng.normal(size=(dimension, dimension)))[0]
    push = 0.3 * rng.normal(size=(1, dimension))
    state = rng.normal(size=(rows // 20, dimension))
    steps = []
    for _ in range(20):
        action = -0.2 * state[:, :1] + rng.normal(size=(len(state), 1))
        following = state @ turn.T + action @ push + 0.2 * rng.normal(size=state.shape)
        steps.append((state, action, -(state[:, 0] ** 2), following))
        state = following
    states, actions, rewards, following = (np.stack(column, axis=1) for column in zip(*steps, strict=True))
    data = gd.Transitions(
        states.reshape(-1, dimension),
        actions.reshape(-1, 1),
        rewards.ravel(),
        following.reshape(-1, dimension),
        episodes=np.repeat(np.arange(rows // 20), 20),
    )
    return data, gd.SamplingPolicy(lambda states, rng: -0.5 * states[:, :1] + 0.3 * rng.normal(size=(len(states), 1)))
