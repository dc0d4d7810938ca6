"""Logs for state ratios: whole populations, every trajectory, and episodes that end or are cut."""

from itertools import product

import numpy as np

import gradientdice as gd
from problems import known, random_problem

# Rational initial distributions, since initial states are not weighted.
STARTS = np.array([0, 0, 0, 1, 2, 2, 3, 4])


def with_starts(mdp, starts=STARTS):
    initial = np.bincount(starts, minlength=mdp.num_states) / len(starts)
    return gd.mdp.TabularMDP(mdp.transition, mdp.reward, initial)


def every_transition(mdp, data_dist, starts=STARTS, terminal=None):
    """The population: each (s, a, s') once, with its probability for weight; `terminal` is a state that ends episodes."""
    rows = [
        (s, a, t, data_dist[s, a] * mdp.transition[s, a, t])
        for s, a, t in product(range(mdp.num_states), range(mdp.num_actions), range(mdp.num_states))
        if s != terminal
    ]
    s, a, t = (np.array([row[i] for row in rows]) for i in range(3))
    behavior = data_dist / data_dist.sum(axis=1, keepdims=True).clip(1e-300)
    return gd.Transitions(
        s,
        a,
        mdp.reward[s, a],
        t,
        initial_states=starts,
        terminated=None if terminal is None else t == terminal,
        weights=[row[3] for row in rows],
        behavior_log_probs=np.log(behavior[s, a]),
    )


def every_trajectory(mdp, behavior, horizon, terminal=None):
    """All trajectories of a few steps, each an episode with its probability for weight."""
    rows, chances = [], []

    def extend(path, state, chance):
        ended = bool(path) and path[-1][3]
        if ended or len(path) == horizon:
            rows.append(path)
            chances.append(chance)
            return
        for a, t in product(range(mdp.num_actions), range(mdp.num_states)):
            step = behavior[state, a] * mdp.transition[state, a, t]
            if step > 0:
                extend([*path, (state, a, t, t == terminal)], t, chance * step)

    for start in np.flatnonzero(mdp.initial):
        extend([], start, mdp.initial[start])
    flat = np.array([row for path in rows for row in path], dtype=int)
    s, a, t, ended = flat.T
    episodes = np.repeat(np.arange(len(rows)), [len(path) for path in rows])
    return gd.Transitions(
        s,
        a,
        mdp.reward[s, a],
        t,
        initial_states=np.repeat(np.arange(mdp.num_states), np.round(8 * mdp.initial).astype(int)),
        terminated=ended.astype(bool),
        episodes=episodes,
        weights=np.array(chances)[episodes],
        behavior_log_probs=np.log(behavior[s, a]),
    )


def terminating(seed, states=5):
    """A random MDP whose last state ends the episode, and the chains that the library makes of it."""
    mdp, target, data_dist = random_problem(seed, states)
    transition, reward = np.array(mdp.transition), np.array(mdp.reward)
    starts = np.array([0, 0, 0, 1, 2, 2, 3, 3])
    initial = np.bincount(starts, minlength=states) / 8
    transition[-1], reward[-1] = 0.0, 0.0
    transition[-1, :, -1] = 1
    absorbed = gd.mdp.TabularMDP(transition, reward, initial)
    # At discount 1 the end is skipped: what would lead there leads to an initial state.
    again = transition[:-1, :, :-1] + transition[:-1, :, -1:] * initial[:-1]
    restarted = gd.mdp.TabularMDP(again, reward[:-1], initial[:-1])
    data_dist = np.array(data_dist)
    data_dist[-1] = 0
    return absorbed, restarted, target, data_dist / data_dist.sum(), starts


def rollout_with_ends(seed, episodes=300, horizon=40):
    """A log whose episodes end in the last state or are cut, interleaved and oddly numbered."""
    absorbed, _, target, data_dist, _ = terminating(seed)
    behavior = np.full((5, 2), 0.5)
    log = absorbed.rollout(behavior, episodes, horizon, np.random.default_rng(seed))
    before = log.states != 4
    ended = log.next_states == 4
    keep = np.flatnonzero(before)
    order = keep[np.argsort(known(log.truncated)[keep], kind="stable")]
    return (
        absorbed,
        target,
        gd.Transitions(
            log.states[order],
            log.actions[order],
            log.rewards[order],
            log.next_states[order],
            terminated=ended[order],
            episodes=17 - 3 * known(log.episodes)[order],
            behavior_log_probs=known(log.behavior_log_probs)[order],
        ),
    )


def answer(estimator, data, target, functions=None, seed=0):
    functions = gd.Tabular(*np.shape(target)) if functions is None else functions
    return estimator.answer(gd.Problem(data, gd.TabularPolicy(target), functions, seed))


AVERAGE = [gd.COPTD(1.0), gd.BCH(1.0), gd.DiscountedCOPTD(1.0)]


PLAIN = [gd.GEM(0.9, self_normalised=False), gd.DiscountedCOPTD(0.9, self_normalised=False)]


DISCOUNTED = [gd.GEM(0.9), gd.DiscountedCOPTD(0.9), *PLAIN]


EVERY = [*AVERAGE, *DISCOUNTED, gd.BCH(0.9)]
