"""Small problems for trajectory estimators."""

from dataclasses import fields, replace

import numpy as np

import gradientdice as gd


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
    columns = {field.name: getattr(data, field.name) for field in fields(data)}
    kept = {
        name: column if name == "initial_states" or column is None else column[rows] for name, column in columns.items()
    }
    return gd.Transitions(**{**kept, **changes})
