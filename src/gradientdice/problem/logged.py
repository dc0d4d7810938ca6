"""Features that generalise need every action that the policy takes, and every feature that it reaches, in the log."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import InputError
from gradientdice.functions import FeatureMap
from gradientdice.functions.kernel import unlogged_action_message
from gradientdice.functions.rows import DenseRows
from gradientdice.log.transitions import Transitions
from gradientdice.policies import LoggedPolicy, Policy, SamplingPolicy
from gradientdice.problem.design import Design

# States are handed to the policy in batches of this size where only the actions never logged are looked for.
BATCH_ROWS = 65_536


def require_logged_actions(data: Transitions, policy: Policy) -> None:
    """An error that names the first action that the policy takes at a next or initial state and the log never has."""
    if isinstance(policy, SamplingPolicy) or policy.num_actions is None:
        return
    if data.actions.ndim != 1 or data.actions.dtype.kind not in "iu":
        return  # the function class refuses them, with what it needs
    counted = data.actions[data.row_weights > 0]
    never = np.setdiff1d(np.arange(policy.num_actions), counted)
    if not len(never):
        return
    taken = np.zeros(policy.num_actions)
    n, used = len(data), ~data.ended
    for start in range(0, n, BATCH_ROWS):
        rows = slice(start, min(start + BATCH_ROWS, n))
        at_next = policy.at_next(rows, n) if isinstance(policy, LoggedPolicy) else policy
        states = np.array(data.next_states[rows])
        states[~used[rows]] = data.states[rows][~used[rows]]
        assert not isinstance(at_next, SamplingPolicy)
        taken += data.row_weights[rows][used[rows]] @ at_next.probabilities_at(states)[used[rows]]
    starts = data.start_states
    if starts is not None and not (isinstance(policy, LoggedPolicy) and not policy.knows_initial):
        at_initial = policy.at_initial(len(starts)) if isinstance(policy, LoggedPolicy) else policy
        assert not isinstance(at_initial, SamplingPolicy)
        assert data.start_weights is not None
        taken += data.start_weights @ at_initial.probabilities_at(starts)
    missing = never[taken[never] > 0]
    if len(missing):
        raise InputError(unlogged_action_message(int(missing[0])))


def require_logged_features(functions: FeatureMap, design: Design) -> None:
    """The same as `require_logged` for rows that are all in memory; a table is checked when the problem is built."""
    if not isinstance(design.current, DenseRows) or not isinstance(design.following, DenseRows):
        return
    own = slice(0, design.width - design.absorbing)
    logged = design.weights @ design.current.values[:, own] ** 2
    reached = design.weights @ np.abs(design.following.values[:, own])
    if design.initial is not None:
        assert design.initial_weights is not None
        reached = reached + design.initial_weights @ np.abs(design.initial.matrix(design.width)[:, own])
    require_logged(functions, logged, reached)


def require_logged(functions: FeatureMap, logged: Float[np.ndarray, " K"], reached: Float[np.ndarray, " K"]) -> None:
    """An error that names the first pair, action or feature that the policy reaches but no logged row has.

    Args:
        functions: the function class.
        logged: each feature's mean square over the log.
        reached: how much of each feature the policy reaches at next and initial states.
    """
    unlogged = np.flatnonzero((logged <= 0) & (reached > 0))
    if len(unlogged):
        raise InputError(functions.unlogged_message(int(unlogged[0]), len(unlogged)))
