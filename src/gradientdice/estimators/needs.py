"""What an estimator needs and a log may lack: each is refused by name, with what would help."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import InputError
from gradientdice.functions.mlp import MLP
from gradientdice.log.transitions import Transitions
from gradientdice.policies import DiscretePolicy, LoggedPolicy, Policy, TabularPolicy
from gradientdice.problem.problem import Problem


def require_discounted(name: str, discount: float) -> None:
    """An error at discount 1."""
    if discount == 1:
        raise InputError(f"{name} needs a discount below 1. For the average reward use GradientDICE(1.0).")


def require_average(name: str, discount: float) -> None:
    """An error below discount 1."""
    if discount < 1:
        raise InputError(f"{name} is for the average reward, discount 1. Below it use GradientDICE({discount:g}).")


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
