"""Trajectory estimators written again as loops over episodes, and all trajectories of a small MDP with their probabilities."""

import itertools
from math import prod

import numpy as np

import gradientdice as gd


def every_trajectory(mdp, behavior, horizon, terminal=()):
    """A log of all trajectories, each weighted by its probability: its weighted means are exact expectations."""
    columns = {
        name: [] for name in ("states", "actions", "rewards", "next_states", "terminated", "episodes", "weights")
    }
    logs = []
    stack: list[tuple[list[tuple[int, int | None, None]], float]] = [
        ([(s, None, None)], mdp.initial[s]) for s in range(mdp.num_states) if mdp.initial[s] > 0 and s not in terminal
    ]
    number = itertools.count()
    while stack:
        path, probability = stack.pop()
        steps, state = len(path) - 1, path[-1][0]
        if steps == horizon or (steps > 0 and state in terminal):
            episode = next(number)
            for (s, _, _), (after, action, _) in itertools.pairwise(path):
                row = (s, action, mdp.reward[s, action], after, after in terminal, episode, probability)
                for name, entry in zip(columns, row, strict=True):
                    columns[name].append(entry)
                logs.append(np.log(behavior[s, action]))
            continue
        for action in range(mdp.num_actions):
            for after in range(mdp.num_states):
                p = behavior[state, action] * mdp.transition[state, action, after]
                if p > 0:
                    stack.append(([*path, (after, action, None)], probability * p))
    return gd.Transitions(**columns, behavior_log_probs=logs)


def finite_value(mdp, target, discount, horizon):
    """(1−γ) Σ_{t<H} γᵗ E[r_t]."""
    chain = np.einsum("sa,sat->st", target, mdp.transition)
    reward, dist, value = (target * mdp.reward).sum(axis=1), mdp.initial, 0.0
    for step in range(horizon):
        value += (1 - discount) * discount**step * dist @ reward
        dist = dist @ chain
    return value


def as_episodes(data, target):
    """Each episode, in the order of their numbers, as a list of (state, action, reward, next, terminated, ρ, weight, row)."""
    episodes = {}
    for row in range(len(data)):
        s, a = data.states[row], data.actions[row]
        ratio = target[s, a] / np.exp(data.behavior_log_probs[row])
        ended = data.terminated is not None and bool(data.terminated[row])
        weight = 1.0 if data.weights is None else data.weights[row]
        entry = (s, a, data.rewards[row], data.next_states[row], ended, ratio, weight, row)
        episodes.setdefault(data.episodes[row], []).append(entry)
    return [episodes[number] for number in sorted(episodes)]


def product_up_to(episode, step):
    """ρ_{0:t}, or the last product where the episode is over."""
    return prod(entry[5] for entry in episode[: step + 1])


def importance(kind, data, target, discount):
    """The four, from their definitions."""
    episodes = as_episodes(data, target)
    horizon = max(len(episode) for episode in episodes)
    value = 0.0
    for step in range(horizon):
        at = horizon if kind in ("IS", "WIS") else step
        products = [episode[0][6] * product_up_to(episode, at) for episode in episodes]
        total = sum(products) if kind.startswith("W") else sum(episode[0][6] for episode in episodes)
        rewards = [episode[step][2] if step < len(episode) else 0.0 for episode in episodes]
        value += (1 - discount) * discount**step * sum(p * r for p, r in zip(products, rewards, strict=True)) / total
    return value


def fold_q(data, target, discount, folds, actions):
    """LSTDQ's table for each fold left out, from the raw equations; (folds, S, A)."""
    states = len(target)
    tables = []
    for fold in range(folds.count):
        system, reward = np.zeros((states * actions,) * 2), np.zeros(states * actions)
        for row in np.flatnonzero(folds.rows != fold):
            weight = 1.0 if data.weights is None else data.weights[row]
            pair = data.states[row] * actions + data.actions[row]
            system[pair, pair] += weight
            reward[pair] += weight * data.rewards[row]
            if data.terminated is None or not data.terminated[row]:
                for action in range(actions):
                    after = data.next_states[row] * actions + action
                    system[pair, after] -= weight * discount * target[data.next_states[row], action]
        tables.append(np.linalg.lstsq(system, reward, rcond=None)[0].reshape(states, actions))
    return np.array(tables)


def backward(episode, q, target, discount):
    """V̂_0 by Jiang and Li's recursion; V at a cut is that of the state which follows."""
    *_, (_, _, _, after, ended, _, _, _) = episode
    estimate = 0.0 if ended else target[after] @ q[after]
    for s, a, r, _, _, ratio, _, _ in reversed(episode):
        estimate = target[s] @ q[s] + ratio * (r + discount * estimate - q[s, a])
    return estimate


def doubly_robust(data, target, discount, folds, tables):
    episodes = as_episodes(data, target)
    weights = np.array([episode[0][6] for episode in episodes])
    values = [backward(episode, tables[folds.rows[episode[0][7]]], target, discount) for episode in episodes]
    return (1 - discount) * np.average(values, weights=weights)


def j_step_returns(data, target, discount, folds, tables):
    """g_0, …, g_H as Thomas and Brunskill write them: rewards, model and control variate apart."""
    episodes = as_episodes(data, target)
    horizon = max(len(episode) for episode in episodes)
    counts = np.array([episode[0][6] for episode in episodes])
    q_of = [tables[folds.rows[episode[0][7]]] for episode in episodes]

    def weight(step):
        if step < 0:
            return counts / counts.sum()
        products = counts * np.array([product_up_to(episode, step) for episode in episodes])
        return products / products.sum()

    def value_at(i, step):
        episode, q = episodes[i], q_of[i]
        if step < len(episode):
            return target[episode[step][0]] @ q[episode[step][0]]
        after, ended = episode[-1][3], episode[-1][4]
        # After the last row: at the end 0; at a cut, V once, where the last row leads.
        return 0.0 if ended or step > len(episode) else target[after] @ q[after]

    returns = []
    for length in range(horizon + 1):
        total = 0.0
        for i, episode in enumerate(episodes):
            for step in range(length):
                if step < len(episode):
                    s, a, r = episode[step][:3]
                    total += discount**step * weight(step)[i] * (r - q_of[i][s, a])
                    total += discount**step * weight(step - 1)[i] * value_at(i, step)
            reached = min(length, len(episode))
            total += discount**reached * weight(reached - 1)[i] * value_at(i, reached)
        returns.append((1 - discount) * total)
    return np.array(returns)
