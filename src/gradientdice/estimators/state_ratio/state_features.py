"""Functions of the state alone, from a function class over state-action pairs: a log in which all actions are one.

A table has a parameter for each state; kernel features are made from the states; features of the user's must not depend
on the action. Chunks, the absorbing state and initial states then are those of any other log.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import InputError
from gradientdice.functions import FittedKernel, LinearFeatures, LinearFunctions, Tabular
from gradientdice.policies import DiscretePolicy
from gradientdice.problem.problem import Problem
from gradientdice.problem.stream import LogDesign
from gradientdice.problem.support import TableSupport

# A feature function that looks at the action does so in some of so many rows.
LOOKED_AT = 256


def state_log(
    name: str,
    problem: Problem,
    num_actions: int,
    functions: LinearFunctions,
    weights: Float[np.ndarray, " n"] | None = None,
) -> LogDesign:
    """The feature rows x(s), x(s') and x(s0) of a log.

    Args:
        name: the estimator's, for refusals.
        problem: the log.
        num_actions: how many actions there are.
        functions: a function class over states and actions.
        weights: how often each row counts, in place of the log's own.

    Raises:
        InputError: if the functions cannot do without the action.
    """
    data = problem.data
    alone = replace(
        data,
        actions=np.zeros(len(data), dtype=np.int64),
        weights=data.weights if weights is None else weights,
        behavior_log_probs=None,
    )
    one = DiscretePolicy(lambda states: np.ones((len(states), 1)), num_actions=1)
    if isinstance(functions, Tabular):
        # Steps to a state without rows go to an initial state, as in every table.
        support = TableSupport.of(alone, one, Tabular(functions.num_states, 1))
        return LogDesign(support.data, support.policy, support.table)
    return LogDesign(alone, one, _of_states(name, data.states[:LOOKED_AT], num_actions, functions))


def _of_states(name: str, states: np.ndarray, num_actions: int, functions: LinearFunctions) -> LinearFunctions:
    if isinstance(functions, FittedKernel):
        if functions.num_actions is None:
            raise InputError(
                f"{name} is for functions of the state alone, and these have the action among their inputs."
            )
        return replace(functions, num_actions=1)
    if isinstance(functions, LinearFeatures):
        first, *others = (functions.at(states, np.full(len(states), action)).values for action in range(num_actions))
        if any(not np.array_equal(first, other) for other in others):
            raise InputError(
                f"{name} is for functions of the state alone, and these features depend on the action: give "
                "LinearFeatures whose function takes no notice of its actions, or Tabular, RandomFourier or Nystrom."
            )
    return functions
