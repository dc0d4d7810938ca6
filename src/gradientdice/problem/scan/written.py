"""Feature rows of a chunk, written into the memory of a chunk before it."""

from __future__ import annotations

import numpy as np

from gradientdice.functions import LinearFeatures
from gradientdice.functions.linear import RowMemory
from gradientdice.functions.rows import DenseRows
from gradientdice.log.transitions import Transitions
from gradientdice.policies import DiscretePolicy, TabularPolicy
from gradientdice.problem.design import Design


class ChunkMemory:
    """Memory for the feature rows of one chunk at a time.

    Attributes:
        current: for x(s,a).
        following: for Σ_a' π(a'|s') x(s',a').
    """

    def __init__(self, *, absorbing: bool) -> None:
        # The absorbing state's feature is the last one.
        self.current, self.following = RowMemory(int(absorbing)), RowMemory(int(absorbing))


def written_rows(
    data: Transitions,
    policy: DiscretePolicy | TabularPolicy,
    functions: LinearFeatures,
    rows: slice,
    memory: ChunkMemory,
) -> Design:
    """What `feature_rows` gives, without new memory for it.

    Args:
        data: the log.
        policy: the policy.
        functions: the features.
        rows: which transitions.
        memory: what it held before is lost.
    """
    n, absorbing = len(data.rewards[rows]), bool(memory.current.after)
    current = functions.written_at(data.states[rows], data.actions[rows], memory.current)
    ended = data.terminated[rows] if absorbing and data.terminated is not None else np.zeros(n, dtype=bool)
    next_states = data.next_states[rows]
    any_ended = bool(ended.any())
    if any_ended:
        # The state after the end means nothing and may be anything: look at the state before it instead.
        next_states = np.array(next_states)
        next_states[ended] = data.states[rows][ended]
    shares = policy.probabilities_at(next_states)
    if any_ended:
        shares = np.where(ended[:, None], 0.0, shares)
    following = functions.written_mean(next_states, shares, memory.following)
    if any_ended:
        following[:, -1] = ended
    weights = np.ones(n) if data.weights is None else data.weights[rows]
    return Design(
        current.shape[1],
        absorbing,
        DenseRows(current),
        DenseRows(following),
        data.rewards[rows],
        weights,
        ended,
        None,
    )
