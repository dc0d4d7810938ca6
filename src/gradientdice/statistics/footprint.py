"""Origin of an answer: rows that carry it, times in the episodes, places in the log, and where the policy goes.

Movements set the target's mass in each state beside the log's, or the means of the coordinates; the state map does so
on the two coordinates that tell them apart best. Everything is gathered into a few dozen bins, so that an estimate can
show it without holding the log. Mass is weight · τ, the row's share in the target's distribution. A row's share in the
error is its squared influence value: with right functions the influence values of an episode's rows are uncorrelated,
so that these squares add up to the variance. Actions are the policy's own in the states that it visits
(`policy_actions.py`), not logged actions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from jaxtyping import Float, Int

from gradientdice.log.transitions import Transitions
from gradientdice.problem.problem import Problem
from gradientdice.statistics.influence import Influence
from gradientdice.statistics.policy_actions import PolicyActions, are_discrete, policy_actions

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


BINS = 40
# More actions than these are not shown one by one.
MOST_ACTIONS = 12
HEAVIEST = 5


@dataclass(frozen=True, eq=False)
class Profile:
    """Shares over the bins of one quantity; each array adds up to 1.

    Attributes:
        edges: (b + 1,) of the bins.
        logged: (b,) the share of the log.
        target: (b,) the share of the target's mass.
        error: (b,) the share of the error's variance; None without influence values.
    """

    edges: Float[np.ndarray, " edges"]
    logged: Float[np.ndarray, " b"]
    target: Float[np.ndarray, " b"]
    error: Float[np.ndarray, " b"] | None


@dataclass(frozen=True)
class HeavyRow:
    """A row with a large share in the error.

    Attributes:
        row: its number in the log, from 0.
        episode: its episode; None if there are none, or none has two rows.
        step: its number in the episode, from 0; None likewise.
        state: where that was, in words where the log has them.
        action: what was done, likewise.
        reward: what it paid.
        ratio: how much more often the target is there.
        share: of the error's variance.
    """

    row: int
    episode: int | None
    step: int | None
    state: str
    action: str
    reward: float
    ratio: float
    share: float


@dataclass(frozen=True, eq=False)
class Footprint:
    """What the rows of a log have to do with an answer.

    Attributes:
        by_step: by time in the episode; None if no episode has two rows.
        along_log: by the order of the rows.
        states: where the target goes in state space; None for a table, whose states `Estimate.movements` shows.
        actions: the share of each discrete action, or the mean of each coordinate of an action: in the log, and of the
            policy's own actions in the states that it visits. Actions that the log never has are among them.
        action_shares: whether they are shares.
        action_distance: how far the policy's own shares lie from those of the logged actions weighted by the ratio:
            half the sum of absolute differences. With an exact ratio they are alike, so that this says how uncertain
            the visited states are, and the shares with them. None where actions are not discrete.
        unlogged: the share of the policy's steps that a table's log does not contain; None for other functions.
        heaviest: the rows with the largest shares in the error, largest first.
        correction: below discount 1, E[τ (r + γV' − Q)]: what the rows add to what Q alone says of the initial
            states; None without influence values.
    """

    by_step: Profile | None
    along_log: Profile
    states: StateMap | None
    actions: tuple[Movement, ...]
    action_shares: bool
    heaviest: tuple[HeavyRow, ...]
    correction: float | None
    action_distance: float | None = None
    unlogged: float | None = None


def footprint(
    problem: Problem,
    ratio: Float[np.ndarray, " n"],
    influence: Influence | None,
    discount: float,
    unlogged: float | None = None,
) -> Footprint:
    """The footprint of an answer with this ratio.

    Args:
        problem: what was answered.
        ratio: at each row.
        influence: the shares in the answer's error; None if it has none.
        discount: γ.
        unlogged: the share of the policy's steps that the log does not contain, where that is known.
    """
    data = problem.data
    rows = _Rows.of(data, ratio, influence)
    order = np.arange(len(data))
    taken = policy_actions(problem, data.row_weights * ratio, discount)
    return Footprint(
        by_step=None if rows.step is None else rows.profile(rows.step),
        along_log=rows.profile(order),
        states=state_map(data, rows.logged, rows.target),
        actions=_actions(data, rows, taken),
        action_shares=are_discrete(data) if taken is None else taken.shares is not None,
        heaviest=_heaviest(data, rows, ratio),
        correction=_correction(data, influence) if discount < 1 else None,
        action_distance=None if taken is None else taken.distance,
        unlogged=unlogged,
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """Each row's share of the log, of the target's mass and of the error; its step, if episodes have several."""

    logged: Float[np.ndarray, " n"]
    target: Float[np.ndarray, " n"]
    error: Float[np.ndarray, " n"] | None
    step: Int[np.ndarray, " n"] | None

    @classmethod
    def of(cls, data: Transitions, ratio: np.ndarray, influence: Influence | None) -> _Rows:
        weights = data.row_weights
        error = None if influence is None else influence.rows**2
        return cls(
            weights / weights.sum(),
            _shares(weights * ratio),
            None if error is None or not error.any() else error / error.sum(),
            _steps(data.episodes),
        )

    def profile(self, place: Int[np.ndarray, " n"]) -> Profile:
        """Over whole numbers from 0, in at most `BINS` bins of as many of them each; the last may have fewer."""
        count = int(place.max()) + 1
        width = -(-count // BINS)
        index = place // width
        edges = np.minimum(np.arange(0, count + width, width, dtype=float), count)

        def binned(shares: np.ndarray) -> np.ndarray:
            return np.bincount(index, weights=shares, minlength=len(edges) - 1)

        error = None if self.error is None else binned(self.error)
        return Profile(edges, binned(self.logged), binned(self.target), error)


def _shares(mass: np.ndarray) -> np.ndarray:
    """Mass that adds up to 1, where it has a sum."""
    total = mass.sum()
    return mass / total if total != 0 else mass


def _steps(episodes: np.ndarray | None) -> np.ndarray | None:
    """Each row's number in its episode; None where no episode has two rows."""
    if episodes is None:
        return None
    order = np.argsort(episodes, kind="stable")
    _, first, index = np.unique(episodes[order], return_index=True, return_inverse=True)
    steps = np.empty(len(episodes), dtype=np.int64)
    steps[order] = np.arange(len(episodes)) - first[index]
    return steps if steps.any() else None


def _actions(data: Transitions, rows: _Rows, taken: PolicyActions | None) -> tuple[Movement, ...]:
    """The shares of the actions that are taken most, or the mean of each coordinate.

    Where the policy cannot be asked, its actions are the logged ones, weighted by the ratio.
    """
    actions = data.actions
    if not are_discrete(data) or (taken is not None and taken.means is not None):
        columns = actions.reshape(len(actions), -1)[:, :MOST_ACTIONS]
        own = rows.target @ columns if taken is None or taken.means is None else taken.means[:MOST_ACTIONS]
        return mean_movements("action", data.action_columns, np.stack([rows.logged @ columns, own]))
    seen, index = np.unique(actions, return_inverse=True)
    before, after = np.bincount(index, weights=rows.logged), np.bincount(index, weights=rows.target)
    codes = seen
    if taken is not None and taken.codes is not None and taken.shares is not None:
        codes = np.union1d(seen, taken.codes[taken.shares > 0])
        logged, own = np.zeros(len(codes)), np.zeros(len(codes))
        logged[np.searchsorted(codes, seen)] = before
        known = np.isin(taken.codes, codes)
        own[np.searchsorted(codes, taken.codes[known])] = taken.shares[known]
        before, after = logged, own
    most = np.sort(np.argsort(-np.maximum(before, after), kind="stable")[:MOST_ACTIONS])
    return tuple(Movement(_action_word(data, int(codes[k])), float(before[k]), float(after[k])) for k in most)


def _action_word(data: Transitions, code: int) -> str:
    """What an action is called; the log's words may lack one that only the policy takes."""
    if data.action_names is not None and not 0 <= code < len(data.action_names):
        return f"action {code}"
    return word(data, "action", code)


def _heaviest(data: Transitions, rows: _Rows, ratio: np.ndarray) -> tuple[HeavyRow, ...]:
    if rows.error is None:
        return ()
    count = min(HEAVIEST, len(ratio))
    top = np.argpartition(-rows.error, count - 1)[:count]
    top = top[np.argsort(-rows.error[top], kind="stable")]
    return tuple(
        HeavyRow(
            row=int(k),
            episode=None if data.episodes is None or rows.step is None else int(data.episodes[k]),
            step=None if rows.step is None else int(rows.step[k]),
            state=_row_text(data, "state", int(k)),
            action=_row_text(data, "action", int(k)),
            reward=float(data.rewards[k]),
            ratio=float(ratio[k]),
            share=float(rows.error[k]),
        )
        for k in top
    )


def _row_text(data: Transitions, kind: Kind, row: int) -> str:
    values, names = (data.states, data.state_columns) if kind == "state" else (data.actions, data.action_columns)
    if values.ndim == 1 and values.dtype.kind != "f":
        return word(data, kind, values[row])
    # Three coordinates are enough to find the row again.
    numbers = np.atleast_1d(values[row])
    shown = [f"{number:.3g}" for number in numbers[:3]]
    if names is not None:
        shown = [f"{name} {number}" for name, number in zip(names, shown, strict=False)]
    return ", ".join(shown) + (", …" if len(numbers) > 3 else "")


def _correction(data: Transitions, influence: Influence | None) -> float | None:
    if influence is None:
        return None
    return float(np.average(influence.ratio * influence.residual, weights=data.row_weights))
