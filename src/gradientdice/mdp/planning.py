"""Good policies for known MDPs, by value iteration, and their softened forms."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from gradientdice.base.arrays import as_floats
from gradientdice.base.errors import InputError, require_finite, require_number
from gradientdice.mdp.finite import FiniteMDP, require_mdp


def optimal_q(mdp: FiniteMDP, discount: float, *, tolerance: float = 1e-8) -> Float[np.ndarray, "S A"]:
    """Q* = r + γ p max_a Q*, by value iteration, to within `tolerance` times the largest reward."""
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
    """π(a|s) ∝ exp(Q(s,a) / temperature)."""
    temperature = require_number("temperature", temperature, low=0, open_low=True)
    values = _table("q", q)
    weights = np.exp((values - values.max(axis=1, keepdims=True)) / temperature)
    return weights / weights.sum(axis=1, keepdims=True)


def mixed_with_uniform(policy: ArrayLike, share: float) -> Float[np.ndarray, "S A"]:
    """The policy with probability `share`, any action at all otherwise."""
    share = require_number("share", share, low=0, high=1)
    probabilities = _table("policy", policy)
    return share * probabilities + (1 - share) / probabilities.shape[1]


def _table(name: str, value: ArrayLike) -> Float[np.ndarray, "S A"]:
    """One row per state and one column per action."""
    table = as_floats(name, value)
    if table.ndim != 2 or not table.size:
        raise InputError(f"{name} must have one row per state and one column per action, not shape {table.shape}.")
    require_finite(name, table)
    return table
