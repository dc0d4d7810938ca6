"""Q of fitted Q evaluation with networks at every row, each from networks that did not see the row's fold.

It learns Q from the log itself, without a model: where dynamics are hard to learn, as with legs that touch the ground,
its errors are others than those of a simulation, and often smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from jaxtyping import Float

from gradientdice.data.transitions import Transitions
from gradientdice.estimators.doubly_robust.network_scores import scored_q
from gradientdice.estimators.model.returns import AVERAGE_DISCOUNT
from gradientdice.functions.mlp import MLP
from gradientdice.inference.scores import HeldOutQ
from gradientdice.problem.folds import Folds
from gradientdice.problem.inputs import NetworkInputs, network_inputs
from gradientdice.problem.problem import Problem
from gradientdice.solvers.stochastic.fitted_q import FittedQ
from gradientdice.solvers.stochastic.network_source import NetworkSource

# Networks per fold, and their training; for each of several policies there is less of both. The copy follows five times
# as fast as by default: at discount 0.99 a slower one is far from its limit after all steps.
MEMBERS, TRAINING = 2, FittedQ(follow_rate=0.05)
SHARED_MEMBERS, SHARED_TRAINING = 1, FittedQ(steps=2_500, follow_rate=0.05)
# At discount 1 the values are those of `AVERAGE_DISCOUNT`, with restarts, as a simulation's are: a differential value
# that follows itself has nothing that holds its level, and drifts off.


def fitted_q_values(problem: Problem, discounts: Sequence[float], folds: Folds) -> Callable[[], list[HeldOutQ | None]]:
    """Asks the policy, and returns what trains: it may run in a thread, from which nobody's policy is called.

    That gives Q and V for each discount; None where the networks left the range of finite numbers.

    Args:
        problem: the log and the policy, which must answer for any state.
        discounts: γ of each Q.
        folds: which rows the networks that score a row may not have seen.
    """
    rng = np.random.default_rng([problem.seed, 8])
    inputs = network_inputs(problem.data, problem.policy, MLP().draws, rng)
    return partial(_trained, problem, inputs, discounts, folds)


def _trained(
    problem: Problem, inputs: NetworkInputs, discounts: Sequence[float], folds: Folds
) -> list[HeldOutQ | None]:
    data, functions = problem.data, MLP()
    alone = problem.sharers == 1
    members, training = (MEMBERS, TRAINING) if alone else (SHARED_MEMBERS, SHARED_TRAINING)
    seeds = np.arange(members, dtype=np.uint32) + np.uint32(1000 * problem.seed)
    found = []
    for discount in discounts:
        used = inputs.without_absorbing() if discount == 1 else inputs
        logs = [
            NetworkSource.create(used.only(folds.rows != fold, folds.initial != fold), discount)
            for fold in range(folds.count)
        ]
        trained = AVERAGE_DISCOUNT if discount == 1 else discount
        fits = training.fit(functions, logs, trained, seeds, progress=False)
        found.append(_within(scored_q(fits, used, folds, members), data, trained))
    return found


def _within(found: HeldOutQ, data: Transitions, discount: float) -> HeldOutQ | None:
    """Values that the rewards allow; None if they are no numbers."""
    parts = [found.q, found.next_value, *([] if found.initial_value is None else [found.initial_value])]
    if not all(np.isfinite(part).all() for part in parts):
        return None
    # After an end there is nothing.
    rewards = np.append(data.rewards, 0.0) if data.ended.any() else data.rewards
    low, high = rewards.min() / (1 - discount), rewards.max() / (1 - discount)

    def kept(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        return np.clip(values, low, high)

    initial = None if found.initial_value is None else kept(found.initial_value)
    return HeldOutQ(kept(found.q), kept(found.next_value), initial)
