"""Does the log show what the policy does? Features that the policy reaches but no logged row has say it does not."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError
from gradientdice.functions.design import FeatureMap
from gradientdice.functions.kernel import FittedKernel
from gradientdice.functions.tabular import Tabular
from gradientdice.policies import DiscretePolicy, LoggedPolicy, Policy, SamplingPolicy, TabularPolicy

SAME = 1e-6


def on_what_is_logged(
    probabilities: Float[np.ndarray, "S A"], counts: Float[np.ndarray, "S A"]
) -> tuple[Float[np.ndarray, "S A"], Float[np.ndarray, " S"]]:
    """A policy that does what the log does in place of actions that are not logged, and how likely those are, by state.

    The probability of actions that a state's rows do not show is shared among those that they do as the log shares
    them. Sharing it as the policy does would let an action that it hardly takes become the only one, and that may lead
    nowhere, while a log of trajectories goes on. Where nothing is logged, the first action is taken.

    Args:
        probabilities: the policy.
        counts: how often each pair was logged.
    """
    kept = np.where(counts > 0, probabilities, 0.0)
    missing = np.where(counts > 0, 0.0, probabilities).sum(axis=1)
    nothing = counts.sum(axis=1) <= 0
    logged = np.where(nothing[:, None], np.arange(counts.shape[1]) == 0, counts)
    policy = kept + missing[:, None] * logged / logged.sum(axis=1, keepdims=True)
    return policy / policy.sum(axis=1, keepdims=True), missing


def stand_in(
    data: Transitions, policy: Policy, table: Tabular, parts: Int[np.ndarray, " n"] | None = None
) -> tuple[Transitions, Policy]:
    """A log and a policy that keep to what is logged, for a table in which logged actions stand in for others.

    The policy does what the log does in place of actions that are not logged in a state (a LoggedPolicy is first made a
    table), and a step to a state that the log never leaves goes to the first start instead.

    Args:
        data: the log.
        policy: the policy.
        table: the table.
        parts: which part of the log each row is in, if any one of them will be left out: a pair then counts as logged
            only if two parts show it.
    """
    table.check("states", data.states, table.num_states)
    table.check("actions", data.actions, table.num_actions)
    if isinstance(policy, SamplingPolicy):
        raise InputError("A tabular model needs action probabilities: use TabularPolicy or DiscretePolicy.")
    if isinstance(policy, LoggedPolicy):
        policy = policy_table(data, policy, table)
    if policy.num_actions != table.num_actions:
        raise InputError(f"The policy has {policy.num_actions} actions but the table has {table.num_actions}.")
    weights = data.row_weights
    pairs = data.states.astype(np.int64) * table.num_actions + data.actions
    counts = np.bincount(pairs, weights, table.num_features)
    if parts is not None:
        shown, times = np.unique(
            np.unique(np.column_stack([pairs, parts])[weights > 0], axis=0)[:, 0], return_counts=True
        )
        counts[np.setdiff1d(np.arange(len(counts)), shown[times > 1])] = 0.0
    counts = counts.reshape(table.num_states, table.num_actions)
    left = np.asarray(counts.sum(axis=1) > 0)
    seen = np.flatnonzero(left)
    restricted, missing = on_what_is_logged(policy.probabilities_at(seen), counts[seen])
    if missing.any():
        whole = np.full(counts.shape, 1 / table.num_actions)
        whole[seen] = restricted
        policy = TabularPolicy(whole)
    return _never_stuck(data, left, table.num_states), policy


def policy_table(data: Transitions, policy: LoggedPolicy, table: Tabular) -> TabularPolicy:
    """A policy that is known at the log's states, as a table: steps that are led elsewhere need it there."""
    if policy.num_actions is None:
        raise InputError("A tabular model needs action probabilities: give next_probabilities, not next_actions.")
    whole = np.full((table.num_states, policy.num_actions), 1 / policy.num_actions)
    alive = ~data.ended
    given = _probabilities(policy.at_next(slice(None), len(data)), data.next_states)
    known = [("next_states row", np.flatnonzero(alive), data.next_states[alive], given[alive])]
    if policy.knows_initial and data.start_states is not None:
        starts = data.start_states
        first = _probabilities(policy.at_initial(len(starts)), starts)
        known.append(("initial state", np.arange(len(starts)), starts, first))
    for _, _, states, probabilities in known:
        table.check("states", states, table.num_states)
        whole[states] = probabilities
    for name, numbers, states, probabilities in known:
        apart = np.abs(whole[states] - probabilities).max(axis=1, initial=0) > SAME
        if apart.any():
            raise InputError(
                f"The policy's probabilities at {name} {numbers[np.argmax(apart)]} differ from others for "
                "the same state: where logged actions stand in for others it must be a function of the state."
            )
    return TabularPolicy(whole)


def _probabilities(policy: DiscretePolicy | SamplingPolicy, states: np.ndarray) -> np.ndarray:
    assert isinstance(policy, DiscretePolicy)
    return policy.probabilities_at(states)


def _never_stuck(data: Transitions, left: Bool[np.ndarray, " S"], count: int) -> Transitions:
    """The log with steps to states that it never leaves led to the first start that it does."""
    inside = (data.next_states >= 0) & (data.next_states < count)
    stuck = inside & ~left[np.where(inside, data.next_states, 0)]
    if data.terminated is not None:
        stuck &= ~data.terminated
    starts = data.start_states
    lost = None if data.initial_states is None else ~left[np.clip(data.initial_states, 0, count - 1)]
    if not stuck.any() and (lost is None or not lost.any()):
        return data
    usable = data.states if starts is None else starts
    usable = usable[left[np.clip(usable, 0, count - 1)]]
    if not len(usable):
        raise InputError(
            "The log has no row in any of the states that episodes start in: nothing is known of how they begin. "
            "Log more data there."
        )
    first = usable[0]
    # An episode's own first row is logged, and is left out only with a part of the log: then the fit refuses it.
    starts = starts if starts is None or lost is None else np.where(lost, first, starts)
    return data.redirected(np.where(stuck, first, data.next_states), starts)


def require_logged(functions: FeatureMap, logged: Float[np.ndarray, " K"], reached: Float[np.ndarray, " K"]) -> None:
    """An error that names the first pair, action or feature that the policy reaches but the log never shows.

    Args:
        functions: the function class.
        logged: each feature's mean square over the log.
        reached: how much of each feature the policy reaches at next and initial states.
    """
    unlogged = np.flatnonzero((logged <= 0) & (reached > 0))
    if not len(unlogged):
        return
    first = int(unlogged[0])
    if isinstance(functions, Tabular):
        state, action = divmod(first, functions.num_actions)
        raise InputError(
            f"The policy takes action {action} in state {state}, which the log never shows ({len(unlogged)} such "
            "pairs): a table has nothing to go by there. Log more data, use features that generalise, or give "
            "Tabular(…, stand_in=True) to let the logged actions stand in."
        )
    if isinstance(functions, FittedKernel) and functions.num_actions is not None:
        action = first // (len(logged) // functions.num_actions)
        raise InputError(
            f"The policy takes action {action}, which the log never shows: nothing is known of what follows it. "
            "Log more data."
        )
    raise InputError(
        f"Feature {first} is 0 in every logged row but not where the policy goes ({len(unlogged)} such features): "
        "nothing is known of what happens there. Log more data, or leave the feature out."
    )
