"""Where the target's mass moves: how much of it lies in each state, beside how much of the log does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from jaxtyping import Float

from gradientdice.data.transitions import Transitions

MOST = 10
MOST_COORDINATES = 20


@dataclass(frozen=True)
class Movement:
    """One place: a state of a table, or a coordinate of a vector state.

    Attributes:
        where: its name.
        logged: the share of the log there, or the coordinate's mean in the log.
        target: the same under the target policy.
    """

    where: str
    logged: float
    target: float


def movements(
    data: Transitions, ratio: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
) -> tuple[Movement, ...]:
    """The states whose share changes most, or every coordinate's mean (the first twenty)."""
    logged = weights / weights.sum()
    mass = weights * ratio
    target = mass / mass.sum() if mass.sum() != 0 else mass
    if data.states.ndim == 2:
        means = np.stack([logged, target]) @ data.states[:, :MOST_COORDINATES]
        return tuple(
            Movement(f"state[{k}], mean", float(before), float(after)) for k, (before, after) in enumerate(means.T)
        )
    states, index = np.unique(data.states, return_inverse=True)
    before, after = np.bincount(index, weights=logged), np.bincount(index, weights=target)
    order = np.argsort(-np.abs(after - before))[:MOST]
    return tuple(Movement(word(data, "state", states[k]), float(before[k]), float(after[k])) for k in order)


def word(data: Transitions, kind: Literal["state", "action"], code: object) -> str:
    """What a state or an action is called: the log's own word where it has any, else its number."""
    names = data.state_names if kind == "state" else data.action_names
    return f"{kind} {code}" if names is None else names[int(cast(int, code))]
