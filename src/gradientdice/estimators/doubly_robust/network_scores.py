"""What networks that were trained without each fold say about the fold's rows."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
from jaxtyping import Float

from gradientdice.dice.stochastic.functions import Layers, predict
from gradientdice.log.transitions import Transitions
from gradientdice.problem.folds import Folds, counted_starts
from gradientdice.problem.inputs import NetworkInputs
from gradientdice.statistics.influence import HeldOutQ

# At discount 1 the values are those of this discount, with restarts: the residuals' mean is right for any function.
AVERAGE_DISCOUNT = 0.99


def simulated_discount(discount: float) -> float:
    """The discount of values that are learned for an answer at this one."""
    return AVERAGE_DISCOUNT if discount == 1 else discount


def scored_q(
    fits: Sequence[Layers],
    inputs: NetworkInputs,
    folds: Folds,
    members: int,
    bounds: tuple[float, float],
) -> HeldOutQ:
    """Q and V of the mean of an ensemble.

    Args:
        fits: for each fold the networks that did not see it.
        inputs: of the whole log, without the absorbing state's row at discount 1.
        folds: of its rows and initial states.
        members: networks in each ensemble.
        bounds: Q is kept between these, for each action before the policy's mean: V is then that Q's own.
    """
    n = len(folds.rows)
    q, following = np.empty(n), np.empty(n)
    initial = None if inputs.initial is None or inputs.initial_weights is None else np.empty(len(inputs.initial))
    for fold, layers in enumerate(fits):
        rows = np.flatnonzero(folds.rows == fold)
        q[rows] = np.clip(mean_output(layers, inputs.current[rows], members), *bounds)
        own = expected_output(layers, inputs.following[rows], inputs.following_weights[rows], members, bounds)
        own[inputs.ended[rows]] = 0.0
        if initial is not None and inputs.initial is not None and inputs.initial_weights is not None:
            every = expected_output(layers, inputs.initial, inputs.initial_weights, members, bounds)
            starts = folds.initial == fold
            initial[starts] = every[starts]
            if inputs.restarts:
                assert inputs.start_shares is not None
                counted = counted_starts(starts, inputs.start_shares)
                own[inputs.ended[rows]] = np.average(every[counted], weights=inputs.start_shares[counted])
        following[rows] = own
    return HeldOutQ(q, following, initial)


def value_bounds(data: Transitions, discount: float, level: float = 0.0) -> tuple[float, float]:
    """What the rewards that count, less a level, allow a value to be; after an end there is nothing."""
    rewards = data.rewards[data.row_weights > 0] - level
    if data.ended.any():
        rewards = np.append(rewards, 0.0)
    return float(rewards.min()) / (1 - discount), float(rewards.max()) / (1 - discount)


def without_level(data: Transitions) -> tuple[Float[np.ndarray, " n"], float]:
    """The rewards less their mean, in single precision, and that mean.

    For discount 1, where a constant in the rewards is one in the value: a Q of `AVERAGE_DISCOUNT` would hold a hundred
    times the mean, in single precision.
    """
    level = float(np.average(data.rewards, weights=data.row_weights))
    return (data.rewards - level).astype(np.float32), level


def average_reward(found: HeldOutQ, inputs: NetworkInputs) -> float:
    """(1−γ)V over the log's next states, with γ = `AVERAGE_DISCOUNT`: what the policy earns in the steps after them."""
    return (1 - AVERAGE_DISCOUNT) * float(np.average(found.next_value, weights=inputs.weights))


def mean_output(layers: Layers, inputs: Float[np.ndarray, "n d"], members: int) -> Float[np.ndarray, " n"]:
    """The ensemble's mean output."""
    return np.mean(each_output(layers, inputs, members), axis=0)


def each_output(layers: Layers, inputs: Float[np.ndarray, "n d"], members: int) -> list[Float[np.ndarray, " n"]]:
    """The outputs of each member."""
    return [predict(jax.tree.map(lambda array, m=m: array[m], layers), inputs) for m in range(members)]


def expected_output(
    layers: Layers,
    inputs: np.ndarray,
    weights: np.ndarray,
    members: int,
    bounds: tuple[float, float],
) -> np.ndarray:
    """The policy's mean of the ensemble's outputs over actions or draws, kept in bounds: (n, m, d) -> (n,)."""
    flat = np.clip(mean_output(layers, inputs.reshape(-1, inputs.shape[-1]), members), *bounds)
    return np.sum(flat.reshape(weights.shape) * weights, axis=1)
