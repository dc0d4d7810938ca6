"""Good policies for known MDPs, by value iteration, their softened forms, and finite horizons."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from gradientdice.base.arrays import as_floats, require_memory
from gradientdice.base.errors import InputError, require_count, require_finite, require_number
from gradientdice.mdp.finite import FiniteMDP, TabularMDP, require_mdp


def optimal_q(mdp: FiniteMDP, discount: float, *, tolerance: float = 1e-8) -> Float[np.ndarray, "S A"]:
    """The optimal Q* = r + γ p max_a Q*, by value iteration, to within `tolerance` times the largest reward."""
    require_mdp(mdp)
    discount = require_number("discount", discount, low=0, high=1)
    # A step of value iteration never gets smaller than the last digit.
    require_number("tolerance", tolerance, low=1e-12)
    if discount == 1:
        raise InputError("discount must be below 1 for value iteration; 0.99 is close to the average reward.")
    q = np.array(mdp.reward)
    scale = max(float(np.abs(q).max()), 1e-300)
    while True:
        following = mdp.reward + discount * mdp.expected_next(q.max(axis=1))
        # The contraction bounds the distance to Q* by γ / (1−γ) times the last step.
        settled = discount * np.abs(following - q).max() <= (1 - discount) * tolerance * scale
        q = following
        if settled:
            return q


def softmax_policy(q: ArrayLike, temperature: float) -> Float[np.ndarray, "S A"]:
    """The softmax policy π(a|s) ∝ exp(Q(s,a) / temperature)."""
    temperature = require_number("temperature", temperature, low=0, open_low=True)
    values = _table("q", q)
    weights = np.exp((values - values.max(axis=1, keepdims=True)) / temperature)
    return weights / weights.sum(axis=1, keepdims=True)


def mixed_with_uniform(policy: ArrayLike, share: float) -> Float[np.ndarray, "S A"]:
    """A mixture: the policy with probability `share`, a uniformly drawn action otherwise."""
    share = require_number("share", share, low=0, high=1)
    probabilities = _table("policy", policy)
    return share * probabilities + (1 - share) / probabilities.shape[1]


def _table(name: str, value: ArrayLike) -> Float[np.ndarray, "S A"]:
    """A table of floats with one row per state and one column per action; raise for other shapes."""
    table = as_floats(name, value)
    if table.ndim != 2 or not table.size:
        raise InputError(f"{name} must have one row per state and one column per action, not shape {table.shape}.")
    require_finite(name, table)
    return table


def with_clock(mdp: TabularMDP, horizon: int) -> TabularMDP:
    """An MDP of finite horizon, with the time in its state and an end after `horizon` steps.

    Its state is time · S + state, and `terminal` is horizon · S.

    As γ nears 1, value / (1−γ) nears an episode's expected sum of rewards. At γ = 1 itself only the end is left, which
    pays nothing.
    """
    require_mdp(mdp, TabularMDP)
    horizon, states, actions = require_count("horizon", horizon), mdp.num_states, mdp.num_actions
    size = horizon * states + 1
    require_memory("The transitions", size, actions, size, remedy="Take a shorter horizon.")
    transition, reward, initial = np.zeros((size, actions, size)), np.zeros((size, actions)), np.zeros(size)
    for time in range(horizon):
        now, later = slice(time * states, (time + 1) * states), slice((time + 1) * states, (time + 2) * states)
        reward[now] = mdp.reward
        if time < horizon - 1:
            transition[now, :, later] = mdp.transition
    transition[-1 - states :, :, -1] = 1
    initial[:states] = mdp.initial
    return TabularMDP(transition, reward, initial)
