"""Q of fitted Q evaluation with networks at every row, each from networks that did not see the row's fold.

It learns Q from the log itself, without a model: where dynamics are hard to learn, as with legs that touch the ground,
its errors are others than those of a simulation, and often smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from gradientdice.dice.stochastic.fitted_q import FittedQ, member_seeds
from gradientdice.dice.stochastic.sources import NetworkSource
from gradientdice.estimators.doubly_robust.network_scores import scored_q, simulated_discount, value_bounds
from gradientdice.functions.mlp import MLP
from gradientdice.problem.folds import Folds
from gradientdice.problem.inputs import NetworkInputs, network_inputs
from gradientdice.problem.problem import Problem, num_actions_of
from gradientdice.statistics.influence import HeldOutQ

# Networks per fold, and the steps of their training; for each of several policies there is less of both.
MEMBERS, STEPS = 2, 10_000
SHARED_MEMBERS, SHARED_STEPS = 1, 2_500
# How fast the copy follows that gives V(s'), at least.
LEAST_RATE = 0.05
# Inputs of all actions, or draws, at the next states may take this much, with the copies that training makes of them.
MOST_BYTES, COPIES = 2 << 30, 4
# At discount 1 the values are those of `AVERAGE_DISCOUNT`, with restarts, as a simulation's are.


def fitted_q_values(problem: Problem, discounts: Sequence[float], folds: Folds) -> Callable[[], list[HeldOutQ | None]]:
    """Asks the policy, and returns what trains: it may run in a thread, from which nobody's policy is called.

    That gives Q and V for each discount; None where the networks left the range of finite numbers, or where the inputs
    would take too much memory.

    Args:
        problem: the log and the policy, which must answer for any state.
        discounts: γ of each Q.
        folds: which rows the networks that score a row may not have seen.
    """
    if _bytes(problem) > MOST_BYTES:
        return lambda: [None] * len(discounts)
    rng = np.random.default_rng([problem.seed, 8])
    inputs = network_inputs(problem.data, problem.policy, MLP().draws, rng)
    return partial(_trained, problem, inputs, discounts, folds)


def _bytes(problem: Problem) -> int:
    """What the inputs at the next states take, in single precision."""
    data, actions = problem.data, num_actions_of(problem.policy)
    size = data.states[0].size + (data.actions[0].size if actions is None else actions)
    return COPIES * 4 * len(data) * (MLP().draws if actions is None else actions) * size


def _trained(
    problem: Problem, inputs: NetworkInputs, discounts: Sequence[float], folds: Folds
) -> list[HeldOutQ | None]:
    alone = problem.sharers == 1
    members, steps = (MEMBERS, STEPS) if alone else (SHARED_MEMBERS, SHARED_STEPS)
    found = []
    for discount in discounts:
        used = inputs.without_absorbing() if discount == 1 else inputs
        logs = [
            NetworkSource.create(used.only(folds.rows != fold, folds.initial != fold), discount)
            for fold in range(folds.count)
        ]
        trained = simulated_discount(discount)
        training = FittedQ(steps=steps, least_rate=LEAST_RATE)
        fits = training.fit(MLP(), logs, trained, member_seeds(problem.seed, members), progress=False)
        scores = scored_q(fits, used, folds, members, value_bounds(problem.data, trained))
        found.append(scores if _is_finite(scores) else None)
    return found


def _is_finite(found: HeldOutQ) -> bool:
    parts = [found.q, found.next_value, *([] if found.initial_value is None else [found.initial_value])]
    return all(bool(np.isfinite(part).all()) for part in parts)
