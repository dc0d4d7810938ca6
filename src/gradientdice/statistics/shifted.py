"""Are the next states those that followed? What a log shows after a time limit, and in each row.

A vector environment that resets by itself returns, after a time limit, the first state of the next episode in place of
the last state of the old one; `states[1:]` as next states does the same. Nothing then follows the last step that was
really seen, and V' is that of a start.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from gradientdice.log.sequence import is_over
from gradientdice.log.transitions import Transitions
from gradientdice.statistics.checks import Check, below

# The share of time limits, beyond chance and three deviations of it, after which the log shows the next first state.
CUT_THRESHOLDS = (0.02, 0.2)
# The share of rows whose next state is their own although the next row's is another.
STALE_THRESHOLDS = (0.05, 0.5)
# Rows inside episodes that chance is measured on.
COMPARED = 20_000
# So many deviations are not chance.
DEVIATIONS = 3.0


def shifted_checks(data: Transitions) -> list[Check]:
    """The checks that apply to a log: they need episodes, or flags where they end."""
    checks = []
    stale = stale_share(data)
    if stale is not None:
        checks.append(
            below(
                "next states that are the states themselves",
                stale,
                *STALE_THRESHOLDS,
                "share of the rows whose next state is their own state although the next row of the episode has "
                "another: next_states were recorded before the step",
                "record the state after the step as the next state",
            )
        )
    found = shown_after_limits(data)
    if found is not None:
        share, noise = found
        checks.append(
            below(
                "next states from the next episode",
                share,
                *CUT_THRESHOLDS,
                "share of the cut episodes after which the log shows the first state of the next one, beyond chance: "
                "the environment was reset before the last state was recorded, or next_states are states[1:]",
                'record the final observation (info["final_obs"] in Gymnasium\'s vector environments), or leave out '
                "the last row of each cut episode",
                noise=noise,
            )
        )
    return checks


def stale_share(data: Transitions) -> float | None:
    """The share of steps inside episodes with s'ₜ = sₜ but sₜ₊₁ ≠ sₜ; None without episodes."""
    if data.episodes is None:
        return None
    order = np.argsort(data.episodes, kind="stable")
    inside = (data.episodes[order[1:]] == data.episodes[order[:-1]]) & ~is_over(data)[order[:-1]]
    before, after = order[:-1][inside], order[1:][inside]
    if not len(before):
        return None
    states = data.states
    return float(np.mean(_same(data.next_states[before], states[before]) & ~_same(states[after], states[before])))


def shown_after_limits(data: Transitions) -> tuple[float, float] | None:
    """The share of cut episodes followed by the next one's first state, beyond chance, and the deviation of chance.

    Chance is what rows inside episodes show: in a small table their next states are often a first state too. Where the
    steps at the cuts look like all others the share is 0, since then one long run was cut into pieces, and each piece
    does begin where the one before ended. None if there are no two cut episodes.
    """
    edges = _edges(data)
    if edges is None:
        return None
    matches = edges.matches(data, edges.cuts)
    chance = float(edges.matches(data, edges.inside).mean()) if len(edges.inside) else 0.0
    if chance >= 1:
        return None
    count = len(edges.cuts)
    noise = float(np.sqrt(chance * (1 - chance) / count)) / (1 - chance)
    share = (float(matches.mean()) - chance) / (1 - chance) - DEVIATIONS * noise
    if share <= 0 or not _are_jumps(data, edges.cuts[matches], edges.inside):
        share = 0.0
    return share, noise


@dataclass(frozen=True, eq=False)
class _Edges:
    """Rows at which an episode was cut, some rows inside episodes, and the first row of the episode after each."""

    cuts: Int[np.ndarray, " cuts"]
    inside: Int[np.ndarray, " inside"]
    first_after_cuts: Int[np.ndarray, " cuts"]
    first_after_inside: Int[np.ndarray, " inside"]

    def matches(self, data: Transitions, rows: Int[np.ndarray, " m"]) -> Bool[np.ndarray, " m"]:
        """Whether each row's next state is the first state of the episode after it.

        Numbers with a fraction do not coincide by chance, and environments may be logged side by side: any episode's
        first state counts.
        """
        after = self.first_after_cuts if rows is self.cuts else self.first_after_inside
        following = data.next_states[rows]
        if data.states.dtype.kind in "iu":
            return _same(following, data.states[after])
        starts = {row.tobytes() for row in _rounded(data.states[self.first_after_cuts])}
        return np.array([row.tobytes() in starts for row in _rounded(following)], dtype=bool)


def _edges(data: Transitions) -> _Edges | None:
    over = is_over(data)
    if data.episodes is not None:
        order = np.argsort(data.episodes, kind="stable")
        last = np.append(data.episodes[order[1:]] != data.episodes[order[:-1]], False)
    else:
        order = np.arange(len(data))
        last = over.copy()
    last[-1] = False  # nothing follows the last row
    ends = np.flatnonzero(last)
    cuts = ends[~data.ended[order[ends]]]
    if len(cuts) < 2:
        return None
    inside = np.flatnonzero(~last & ~over[order])
    inside = inside[inside < ends[-1]]
    if len(inside) > COMPARED:
        inside = inside[np.linspace(0, len(inside) - 1, COMPARED).astype(np.int64)]
    following = order[ends[np.searchsorted(ends, inside)] + 1]
    return _Edges(order[cuts], order[inside], order[cuts + 1], following)


def _are_jumps(data: Transitions, cuts: np.ndarray, inside: np.ndarray) -> bool:
    """Whether the steps at the cuts are stranger than those inside episodes."""
    if len(inside) < 2:
        return True
    rows = np.append(inside, cuts)
    surprise = _table_surprise if data.states.ndim == 1 and data.states.dtype.kind in "iu" else _linear_surprise
    values = surprise(data, rows, len(inside))
    usual, strange = values[: len(inside)], values[len(inside) :]
    return bool(strange.mean() - usual.mean() > DEVIATIONS * usual.std() / np.sqrt(len(strange)))


def _table_surprise(data: Transitions, rows: np.ndarray, fitted: int) -> Float[np.ndarray, " m"]:
    """−log of how often each step's next state followed its state and action in the other fitted rows."""
    actions = data.actions[rows].reshape(len(rows), -1)
    pairs = np.column_stack([data.states[rows], actions])
    _, pair = np.unique(pairs, axis=0, return_inverse=True)
    _, step = np.unique(np.column_stack([pair, data.next_states[rows]]), axis=0, return_inverse=True)
    own = np.arange(len(rows)) < fitted
    pair_count = np.bincount(pair[:fitted], minlength=pair.max() + 1)[pair] - own
    step_count = np.bincount(step[:fitted], minlength=step.max() + 1)[step] - own
    return -np.log((step_count + 0.5) / (pair_count + 1.0))


def _linear_surprise(data: Transitions, rows: np.ndarray, fitted: int) -> Float[np.ndarray, " m"]:
    """Log of the distance of each next state from a linear prediction, the coordinates scaled alike."""
    states, following = (_flat(array[rows]) for array in (data.states, data.next_states))
    actions = data.actions[rows]
    if actions.ndim == 1 and actions.dtype.kind in "iu":
        codes = np.unique(actions, return_inverse=True)[1]
        taken = np.eye(codes.max() + 1)[codes]
    else:
        taken = np.column_stack([np.ones(len(rows)), _flat(actions)])
    inputs = np.column_stack([states, taken])
    params = np.linalg.lstsq(inputs[:fitted], following[:fitted], rcond=None)[0]
    apart = following - inputs @ params
    scale = following[:fitted].std(axis=0)
    distance = np.sqrt(np.sum((apart / np.where(scale > 0, scale, 1.0)) ** 2, axis=1))
    return np.log(distance + 1e-6)  # exact predictions differ by rounding only


def _same(left: np.ndarray, right: np.ndarray) -> Bool[np.ndarray, " m"]:
    return np.all(_flat(left) == _flat(right), axis=1)


def _flat(array: np.ndarray) -> Float[np.ndarray, "m d"]:
    return array.reshape(len(array), -1).astype(np.float64)


def _rounded(array: np.ndarray) -> Float[np.ndarray, "m d"]:
    """In single precision, which is what some logs keep of one of the two; without a negative zero."""
    return array.reshape(len(array), -1).astype(np.float32) + np.float32(0)
