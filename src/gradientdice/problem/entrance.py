"""Is this a log, a policy, a function class? The types that every way to an answer asks for first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from gradientdice.base.errors import InputError, StartsMissing
from gradientdice.functions import MLP, FittedKernel, LinearFeatures, LoggedTable, Nystrom, RandomFourier, Tabular
from gradientdice.log.scanning.log import ScannedLog
from gradientdice.log.transitions import Transitions
from gradientdice.policies import DiscretePolicy, LoggedPolicy, Policy, SamplingPolicy, TabularPolicy


@contextmanager
def explained_starts(data: Transitions, policy: Policy) -> Iterator[None]:
    """Says of missing starts what is missing: the initial states, or the policy at those that the log has."""
    try:
        yield
    except StartsMissing as error:
        if not isinstance(policy, LoggedPolicy) or policy.knows_initial or data.start_states is None:
            raise
        raise InputError(
            "The LoggedPolicy is not given at the initial states, which are needed here: give initial_probabilities "
            f"(or initial_actions) with {len(data.start_states)} rows, one per initial state of the log."
        ) from error


def require_types(data: object, policy: object) -> None:
    """An error if these are not a log in memory and a policy."""
    if isinstance(data, ScannedLog):
        raise InputError(
            "A scanned log is taken by evaluate, compare, rank, select, sweep and Moments.from_transitions. What is "
            "asked here needs the log in memory: give log.sample, or load it."
        )
    if not isinstance(data, Transitions):
        raise InputError(f"data must be Transitions, not {type(data).__name__}: gradientdice.load makes them of a log.")
    require_policy(policy)


def require_policy(policy: object) -> None:
    """An error if this is no policy."""
    if not isinstance(policy, (TabularPolicy, DiscretePolicy, SamplingPolicy, LoggedPolicy)):
        raise InputError(
            "policy must be a TabularPolicy, DiscretePolicy, SamplingPolicy or LoggedPolicy, "
            f"not {type(policy).__name__}: gradientdice.policy makes one of it."
        )


def require_same_width(data: Transitions, policy: Policy) -> None:
    """An error if the actions that a policy gives have another number of coordinates than those of the log."""
    if isinstance(policy, SamplingPolicy):
        given = policy.sample(data.next_states[:1], np.random.default_rng(0))
    elif isinstance(policy, LoggedPolicy) and policy.next_actions is not None:
        given = policy.next_actions
    else:
        return
    logged, taken = (1 if actions.ndim == 1 else actions.shape[-1] for actions in (data.actions, given))
    if logged != taken:
        raise InputError(
            f"The policy gives actions of {taken} numbers each, and those of the log have {logged}. A function that "
            "gives probabilities is DiscretePolicy(function, num_actions), with actions numbered from 0."
        )


def require_numbered_states(data: Transitions, policy: Policy) -> None:
    """An error if a table is asked about states that are no numbers of its rows."""
    states = data.states
    if isinstance(policy, TabularPolicy) and (states.ndim != 1 or states.dtype.kind not in "iu"):
        raise InputError(
            "A table of probabilities has one row per state, numbered from 0, and the log's states are "
            f"{states.dtype} of shape {states.shape}. Probabilities for each row of the log are a LoggedPolicy (on the "
            "command line columns of the log); any other policy is a DiscretePolicy(function, num_actions)."
        )


def in_the_policys_words(data: Transitions, policy: Policy) -> Transitions:
    """The log with its actions numbered as the policy numbers them, where both have words for them."""
    words = policy.action_names if isinstance(policy, DiscretePolicy) else None
    if words is None or words == data.action_names:
        return data
    if data.action_names is None:
        return _by_number(data, words)
    unknown = sorted(set(data.action_names) - set(words))
    if unknown:
        raise InputError(
            f"The log has the action {unknown[0]!r}, which the policy does not know; it knows {list(words)[:10]}. Name "
            "them alike, or leave such rows out."
        )
    codes = np.array([words.index(word) for word in data.action_names])
    return replace(data, actions=codes[data.actions], action_names=words)


def _by_number(data: Transitions, words: tuple[str, ...]) -> Transitions:
    """The log with its codes as the policy has them, where the policy's words are whole numbers: these are the codes.

    Other words say nothing of the codes, which are then the places of the words.
    """
    if not all(word.isdecimal() for word in words) or data.actions.ndim != 1 or data.actions.dtype.kind not in "iu":
        return data
    place = {int(word): column for column, word in enumerate(words)}
    codes, index = np.unique(data.actions, return_inverse=True)
    unknown = [int(code) for code in codes if int(code) not in place]
    if unknown:
        raise InputError(
            f"The log has the action {unknown[0]}, which the policy does not know; it knows {list(words)[:10]}. Number "
            "them alike, or leave such rows out."
        )
    return replace(data, actions=np.array([place[int(code)] for code in codes])[index], action_names=words)


def require_functions(functions: object, name: str = "functions") -> None:
    """An error unless this is a function class, or None."""
    allowed = (Tabular, LoggedTable, LinearFeatures, FittedKernel, RandomFourier, Nystrom, MLP)
    if functions is not None and not isinstance(functions, allowed):
        raise InputError(
            f"{name} must be Tabular(…), LinearFeatures(…), RandomFourier(…), Nystrom(…) or MLP(…), not "
            f"{functions!r:.60}."
        )
