"""Where the target goes in state space against the log, on the two coordinates that tell them apart best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradientdice.log.transitions import Transitions
from gradientdice.statistics.movement import coordinate

CELLS = 24
# The outermost rows to each side are gathered at the map's border, so that one far outlier does not shrink the rest.
OUTER = 0.002


@dataclass(frozen=True, eq=False)
class StateMap:
    """Shares of the log and of the target's mass over cells of one or two coordinates of the state.

    Attributes:
        columns: which coordinates, one or two.
        names: what they are called.
        edges: (b + 1,) of the cells, for each coordinate.
        logged: (b,) or (b, b) the share of the log in each cell.
        target: the same of the target's mass.
    """

    columns: tuple[int, ...]
    names: tuple[str, ...]
    edges: tuple[Float[np.ndarray, " edges"], ...]
    logged: Float[np.ndarray, "b ..."]
    target: Float[np.ndarray, "b ..."]


def state_map(data: Transitions, logged: Float[np.ndarray, " n"], target: Float[np.ndarray, " n"]) -> StateMap | None:
    """The map of a log with vector states; None for a table, or where no coordinate varies.

    Args:
        data: the log.
        logged: each row's share of the log.
        target: each row's share of the target's mass.
    """
    if data.states.ndim == 1 and data.states.dtype.kind != "f":
        return None
    states = data.states.reshape(len(data), -1)
    columns = _most_different(states, logged, target)
    if not columns:
        return None
    edges = tuple(_edges(states[:, k]) for k in columns)
    index = tuple(
        np.clip(np.searchsorted(own, states[:, k], side="right") - 1, 0, CELLS - 1)
        for own, k in zip(edges, columns, strict=True)
    )
    shape = (CELLS,) * len(columns)
    flat = np.ravel_multi_index(index, shape)
    counts = [np.bincount(flat, weights=shares, minlength=CELLS ** len(columns)) for shares in (logged, target)]
    names = tuple(coordinate("state", data.state_columns, k) for k in columns)
    return StateMap(columns, names, edges, counts[0].reshape(shape), counts[1].reshape(shape))


def _edges(column: np.ndarray) -> np.ndarray:
    low, high = np.quantile(column, [OUTER, 1 - OUTER])
    if low == high:
        low, high = column.min(), column.max()
    return np.linspace(low, high, CELLS + 1)


def _most_different(states: np.ndarray, logged: np.ndarray, target: np.ndarray) -> tuple[int, ...]:
    """The coordinate whose mean moves most, in standard deviations, and then the one that adds most to it."""
    mean = logged @ states
    spread = np.sqrt(np.maximum(logged @ states.astype(float) ** 2 - mean**2, 0.0))
    # A column that varies by rounding alone does not vary.
    varies = spread > 1e-9 * np.maximum(1.0, np.abs(mean))
    if not varies.any():
        return ()
    scale = np.where(varies, spread, 1.0)
    moved = np.where(varies, np.abs(target @ states - mean) / scale, -1.0)
    first = int(np.argmax(moved))
    varies[first] = False
    if not varies.any():
        return (first,)
    # What goes with the first coordinate shows nothing new.
    centred = (states[:, first] - mean[first]) / scale[first]
    correlation = (logged * centred) @ states / scale
    moved = np.where(varies, (moved + 1e-6) * (1 - np.minimum(correlation**2, 1.0)), -1.0)
    return (first, int(np.argmax(moved)))
