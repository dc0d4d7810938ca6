"""Tables far larger than the log: the states that it shows, renumbered, so that memory and time follow the log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradientdice.data.transitions import Transitions
from gradientdice.functions.tabular import Tabular
from gradientdice.policies import LoggedPolicy, Policy, SamplingPolicy, TabularPolicy

# Up to this many pairs, arrays of the table's own size are no matter.
LARGEST_WHOLE = 1_000_000


def compacted(data: Transitions, policy: Policy, table: Tabular) -> tuple[Transitions, Policy, Tabular] | None:
    """A log, a policy and a table over the states that the log shows, in their order; None where there is no need.

    The rows and their order stay what they are, and so does every answer.
    """
    if not table.is_sparse or table.num_features <= LARGEST_WHOLE or isinstance(policy, SamplingPolicy):
        return None
    table.check("states", data.states, table.num_states)
    # What follows an end is not used and may be anything.
    following = np.where(data.ended, data.states, data.next_states)
    parts = {"states": data.states, "next_states": following}
    if data.initial_states is not None:
        parts["initial_states"] = data.initial_states
    for name, states in parts.items():
        table.check(name, states, table.num_states)
    table.check("actions", data.actions, table.num_actions)
    names, where = np.unique(np.concatenate(list(parts.values())), return_inverse=True)
    pieces = np.split(where, np.cumsum([len(states) for states in parts.values()])[:-1])
    if not isinstance(policy, LoggedPolicy):
        policy = TabularPolicy(policy.probabilities_at(names))
    renumbered = replace(data, **dict(zip(parts, pieces, strict=True)))
    return renumbered, policy, replace(table, num_states=len(names), stand_in=True)
