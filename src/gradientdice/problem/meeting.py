"""A policy meets a log: rules over the log's actions, and functions that are none.

A rule that returns an action's code or word is a deterministic policy over the log's actions, however it was given.
Taken for a continuous action, its code would be an amount, and each numbering of the actions another policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gradientdice.base.arrays import as_array, as_numpy
from gradientdice.base.errors import InputError
from gradientdice.functions import Tabular
from gradientdice.log.transitions import Transitions
from gradientdice.policies import DiscretePolicy, LoggedPolicy, Policy, SamplingPolicy

# So many states show what a policy returns, and whether it returns it again.
MOST_ASKED = 256
SAME, SAME_SINGLE = 1e-6, 1e-4
MOST_LISTED = 10


def over_logged_actions(data: Transitions, policy: Policy, functions: Any, *, whole_log: bool = True) -> Policy:
    """The policy with probabilities of the log's actions, where it returns their codes or words.

    Args:
        data: the log, or a sample of it.
        policy: any policy; one that has probabilities stays as it is.
        functions: the function class; a table says how many actions there are.
        whole_log: whether each action of the log is in `data`.

    Raises:
        InputError: if the log's actions are discrete, and the policy returns something else.
    """
    if not isinstance(policy, (SamplingPolicy, LoggedPolicy)) or not _are_discrete(data):
        return policy
    actions = _Actions.of(data, functions, whole_log=whole_log)
    if isinstance(policy, LoggedPolicy):
        if policy.next_actions is None:
            return policy
        starts = policy.initial_actions
        return LoggedPolicy(actions.shares(policy.next_actions), None if starts is None else actions.shares(starts))
    states = _some_states(data, functions)
    first, second = (_returned(policy, states, seed) for seed in (0, 1))
    if first.ndim != 1:
        return policy  # refused for its width
    if first.shape == second.shape and (first != second).any():
        raise InputError(
            f"The policy draws actions, and the log's are {actions.listed}: give its probabilities instead, by "
            "DiscretePolicy(function, num_actions)."
        )
    actions.codes(first)  # refused here rather than in the middle of the work
    if not whole_log and first.dtype.kind in "iub":
        actions = _Actions(actions.names, None, max(actions.count, int(first.max()) + 1))
    return DiscretePolicy(_Rule(policy, actions), actions.count, action_names=actions.names)


def require_function(data: Transitions, policy: Policy, functions: Any) -> None:
    """Raise unless the policy gives the same answer when it is asked again about the same states."""
    states = _some_states(data, functions)
    if isinstance(policy, DiscretePolicy):
        # Every other state, in another order: what a policy does in one state may not depend on the batch.
        some = np.arange(len(states))[::-2]
        first, second = policy.probabilities_at(states)[some], policy.probabilities_at(states[some])
        apart = np.abs(first - second).max(axis=1)
        allowed = SAME_SINGLE if np.asarray(as_numpy(policy.function(states[:1]))).dtype != np.float64 else SAME
        what = "probabilities"
    elif isinstance(policy, SamplingPolicy):
        first, second = (policy.sample(states, np.random.default_rng(0)) for _ in range(2))
        if first.shape != second.shape:
            raise InputError(f"The policy returned shape {first.shape} for some states, then {second.shape} for them.")
        apart = np.abs(first.astype(np.float64) - second).reshape(len(first), -1).max(axis=1)
        allowed = SAME_SINGLE * (1 + float(np.abs(first).max()))
        what = "actions from the same seed"
    else:
        return
    if (apart > allowed).any():
        raise InputError(
            f"The policy is no function of the state: asked twice about the same {len(states)} states, it gave {what} "
            f"that differ by up to {apart.max():.2g}. Usual causes: random draws inside it (use the generator that it "
            "is given), means over the batch, dropout left on, something kept between calls."
        )


def _some_states(data: Transitions, functions: Any) -> np.ndarray:
    """States that are spread over the log; of a table those that it has, since others are refused with their place."""
    states = data.states[np.linspace(0, len(data) - 1, min(MOST_ASKED, len(data))).astype(np.int64)]
    if not isinstance(functions, Tabular) or states.ndim != 1:
        return states
    return states[(states >= 0) & (states < functions.num_states)]


@dataclass(frozen=True, eq=False)
class _Actions:
    """The actions of a log.

    Attributes:
        names: their words, by code; None where they are numbers.
        logged: the codes that the log has; None where others may be in rows that were not seen.
        count: how many codes there are, from 0.
    """

    names: tuple[str, ...] | None
    logged: np.ndarray | None
    count: int

    @classmethod
    def of(cls, data: Transitions, functions: Any, *, whole_log: bool) -> _Actions:
        """Those of a log; a table's number of actions allows codes that were never logged."""
        codes = np.unique(data.actions)
        if data.action_names is not None:
            return cls(data.action_names, np.arange(len(data.action_names)), len(data.action_names))
        if isinstance(functions, Tabular):
            return cls(None, np.arange(functions.num_actions), functions.num_actions)
        return cls(None, codes if whole_log else None, int(codes.max()) + 1)

    @property
    def listed(self) -> str:
        """The actions in a few words."""
        known = self.names if self.names is not None else range(self.count) if self.logged is None else self.logged
        return _listed([str(one) for one in known])

    def codes(self, returned: np.ndarray) -> np.ndarray:
        """What a rule returned, as codes; an error that lists both if some are not the log's."""
        if returned.dtype.kind in "USOT":
            index = {word: code for code, word in enumerate(self.names or ())}
            if self.names is None:  # numbers that arrive as text or as objects
                index = {str(code): int(code) for code in (range(self.count) if self.logged is None else self.logged)}
            found = [index.get(word.decode() if isinstance(word, bytes) else str(word), -1) for word in returned]
            if min(found, default=0) < 0:
                raise self._refused(returned[np.argmin(found)], sorted({str(word) for word in returned}))
            return np.array(found, dtype=np.int64)
        if returned.dtype.kind not in "biuf":
            raise InputError(f"The policy must return one of the log's actions {self.listed}, not {returned.dtype}.")
        whole = np.where(np.isfinite(returned), returned, -1).astype(np.int64)
        if (whole != returned).any():
            row = int(np.argmax(whole != returned))
            raise InputError(
                f"The policy returned {returned[row]} in row {row}, and the log's actions are {self.listed}. Return "
                "one of them per state, or a row of probabilities by DiscretePolicy(function, num_actions); amounts "
                "belong into the log as numbers with a fraction (floats)."
            )
        unknown = whole < 0 if self.logged is None else ~np.isin(whole, self.logged)
        if unknown.any():
            raise self._refused(whole[np.argmax(unknown)], np.unique(whole).tolist())
        return whole

    def shares(self, actions: np.ndarray) -> np.ndarray:
        """Actions that were drawn in each state (n, draws, 1), as shares of the codes."""
        if actions.shape[2] != 1:
            raise InputError(
                f"The policy's actions have {actions.shape[2]} numbers each, and the log's are {self.listed}."
            )
        codes = self.codes(actions.reshape(-1)).reshape(actions.shape[:2])
        return (codes[:, :, None] == np.arange(self.count)).mean(axis=1)

    def _refused(self, action: object, returned: list[Any]) -> InputError:
        return InputError(
            f"The policy takes the action {action!s:.40}, which the log never has. It returned "
            f"{_listed([str(one) for one in returned])}; the log has {self.listed}. Name or number them alike; "
            "num_actions= says that more codes are possible."
        )


@dataclass(frozen=True, eq=False)
class _Rule:
    """A rule as probabilities of 0 and 1."""

    policy: SamplingPolicy
    actions: _Actions

    def __call__(self, states: np.ndarray) -> np.ndarray:
        """(n, A) probability 1 for the action of each state."""
        codes = self.actions.codes(_returned(self.policy, states, 0))
        return (codes[:, None] == np.arange(self.actions.count)).astype(np.float64)


def _returned(policy: SamplingPolicy, states: np.ndarray, seed: int) -> np.ndarray:
    """What the policy's function returns, one action per state, words too."""
    found = as_array("The policy's actions", as_numpy(policy.returned(states, np.random.default_rng(seed))))
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim not in (1, 2) or len(found) != len(states):
        raise InputError(
            f"The policy returned actions of shape {found.shape} for {len(states)} states; it must return one row per "
            "state."
        )
    return found


def _are_discrete(data: Transitions) -> bool:
    return data.actions.ndim == 1 and data.actions.dtype.kind in "iub"


def _listed(words: list[str]) -> str:
    shown = ", ".join(word[:20] for word in words[:MOST_LISTED])
    return f"[{shown}]" if len(words) <= MOST_LISTED else f"[{shown}, … {len(words)} in all]"
