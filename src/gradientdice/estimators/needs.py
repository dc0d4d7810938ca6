"""What an estimator needs and a log may lack: each is refused by name, with what would help.

`require_needs` is the first line of an estimator's `answer`. It reads what the estimator declares.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import InputError
from gradientdice.dice.saddle import Solver
from gradientdice.estimators.answer import Estimator, declared
from gradientdice.functions.mlp import MLP
from gradientdice.log.transitions import Transitions
from gradientdice.policies import DiscretePolicy, LoggedPolicy, Policy, TabularPolicy
from gradientdice.problem.problem import Problem


def require_needs(estimator: Estimator, problem: Problem, solver: Solver | None = None) -> None:
    """Raise if the discount, the log, the policy, the functions or the solver are not what an estimator declares.

    Args:
        estimator: with the field `behavior`, a way to estimate the behaviour's probabilities or None, if it needs them.
        problem: the log, the policy and the functions.
        solver: the one that the user gave, if any.

    Raises:
        InputError: that names the first need that is not met.
    """
    name, own, data = type(estimator).__name__, declared(estimator), problem.data
    if solver is not None and not own.takes_solver:
        raise InputError(f"{name} takes no solver: leave solver= out.")
    require_discount(estimator)
    if own.whole_trajectories:
        require_episodes(name, data)
    if own.needs_behavior:
        require_action_probabilities(name, data, problem.policy)
    if own.uses_functions and not own.takes_networks:
        require_linear_functions(name, problem)
    if own.needs_behavior and getattr(estimator, "behavior", None) is None:
        require_logged_probabilities(name, data)


def require_discount(estimator: Estimator) -> None:
    """Raise if an estimator has no answer at its discount."""
    name, own, discount = type(estimator).__name__, declared(estimator), estimator.discount
    if own.discounted_only and discount == 1:
        common = f"{name} needs a discount below 1. For the average reward use GradientDICE(1.0)."
    elif own.average_only and discount < 1:
        common = f"{name} is for the average reward, discount 1. Below it use GradientDICE({discount:g})."
    else:
        return
    raise InputError(own.refusal or common)


def require_logged_probabilities(name: str, data: Transitions) -> Float[np.ndarray, " n"]:
    """The logarithm of the probability with which each logged action was taken, or an error if the log has none."""
    if data.behavior_log_probs is None:
        raise InputError(
            f"{name} needs the probability with which each logged action was taken, and the log has none: give "
            f"behavior_log_probs, or {name}(…, behavior=BehaviorCloning()) to estimate them from the log."
        )
    return data.behavior_log_probs


def require_episodes(name: str, data: Transitions) -> None:
    """An error unless the log says which episode each row belongs to."""
    if data.episodes is None:
        raise InputError(
            f"{name} needs whole trajectories and the log has no episodes: give episodes= (rows of one episode in time "
            "order), or use an estimator for single transitions, such as GradientDICE."
        )


def require_action_probabilities(name: str, data: Transitions, policy: Policy) -> TabularPolicy | DiscretePolicy:
    """The policy, if it gives probabilities for discrete actions in any state; else an error."""
    if isinstance(policy, LoggedPolicy):
        raise InputError(
            f"{name} needs the policy's probabilities at the logged states, and a LoggedPolicy knows the next states "
            "only: give a TabularPolicy or DiscretePolicy, or use GradientDICE."
        )
    if not isinstance(policy, (TabularPolicy, DiscretePolicy)) or data.actions.dtype.kind not in "iu":
        raise InputError(
            f"{name} needs discrete actions with known probabilities under the policy: give a TabularPolicy or "
            "DiscretePolicy, or use GradientDICE, which needs draws only."
        )
    return policy


def target_probabilities(name: str, data: Transitions, policy: Policy) -> Float[np.ndarray, " n"]:
    """π(a|s) of each logged action."""
    known = require_action_probabilities(name, data, policy)
    outside = (data.actions < 0) | (data.actions >= known.num_actions)
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(f"actions must lie in 0 to {known.num_actions - 1}; row {row} is {data.actions[row]}.")
    return np.take_along_axis(known.probabilities_at(data.states), data.actions[:, None].astype(np.int64), axis=1)[:, 0]


def require_linear_functions(name: str, problem: Problem) -> None:
    """An error if the functions are networks."""
    if isinstance(problem.functions, MLP):
        raise InputError(f"{name} is for linear functions: give Tabular, LinearFeatures, RandomFourier or Nystrom.")
