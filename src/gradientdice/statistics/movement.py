"""Where the target's mass moves: how much of it lies in each state, beside how much of the log does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from jaxtyping import Float

from gradientdice.log.transitions import Transitions

Kind = Literal["state", "action"]
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
        return mean_movements(
            "state", data.state_columns, np.stack([logged, target]) @ data.states[:, :MOST_COORDINATES]
        )
    states, index = np.unique(data.states, return_inverse=True)
    before, after = np.bincount(index, weights=logged), np.bincount(index, weights=target)
    order = np.argsort(-np.abs(after - before))[:MOST]
    return tuple(Movement(word(data, "state", states[k]), float(before[k]), float(after[k])) for k in order)


def mean_movements(kind: Kind, names: tuple[str, ...] | None, means: Float[np.ndarray, "2 d"]) -> tuple[Movement, ...]:
    """Each coordinate's mean, in the log (the first row of `means`) and under the target (the second)."""
    return tuple(
        Movement(f"{coordinate(kind, names, k)}, mean", float(before), float(after))
        for k, (before, after) in enumerate(means.T)
    )


def word(data: Transitions, kind: Kind, code: object) -> str:
    """What a state or an action is called: the log's own word where it has any, else its number."""
    names, columns = (
        (data.state_names, data.state_columns) if kind == "state" else (data.action_names, data.action_columns)
    )
    if names is not None:
        return names[int(cast(int, code))]
    return f"{kind if columns is None else columns[0]} {code}"


def coordinate(kind: Kind, names: tuple[str, ...] | None, number: int) -> str:
    """What a number of a vector is called: as the log's column, where its name is known."""
    return f"{kind}[{number}]" if names is None else names[number]
