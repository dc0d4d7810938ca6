"""Are the actions those of their rows? A column of actions that is a row late looks like actions without effect.

In a row (s, a, r, s') the action goes with what follows. If it is that of the row before, it goes with how the state
was reached instead, and what follows does not depend on it. Both are looked at: how much the state moves with the
recorded action after the row, and how much with it before the row.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from gradientdice.functions.kernel import as_inputs
from gradientdice.log.transitions import Transitions
from gradientdice.statistics.checks import Check, below
from gradientdice.statistics.past import Past, dependence, random_signs, signed

# Steps that are looked at.
MOST_STEPS = 3_000
# An effect of so many deviations is not noise; below the second there is none to see, and one of less than this share
# of another is weak beside it.
SEEN, NONE, WEAK = 5.0, 2.0, 1 / 3
# Random functions of a table's state whose means are looked at.
FUNCTIONS = 4


def late_actions_check(data: Transitions, seed: int) -> Check | None:
    """The check; None where the rows are not in time order, or one action is all there is."""
    past = Past.of(data, MOST_STEPS)
    if past is None or len(np.unique(data.actions[past.rows], axis=0)) < 2:
        return None
    after, before = action_effects(data, past, seed)
    return below(
        "effect of the actions on the row before",
        before if after < max(NONE, WEAK * before) else 0.0,
        SEEN,
        SEEN,
        "in standard deviations of noise: the recorded actions go with how their states were reached and not with what "
        "follows, so that they seem to be those of the rows before",
        "align the columns: an action belongs to the row of the state in which it was taken",
        noise=1.0,
    )


def action_effects(data: Transitions, past: Past, seed: int) -> tuple[float, float]:
    """How much the move after a row, and the move that led to it, go with its action, in deviations of noise.

    Both are given the row's state: a policy's actions depend on that, and on nothing that came before it.
    """
    rng = np.random.default_rng(seed)
    rows, known = past.rows, np.flatnonzero(past.known)
    places, origins, following = _columns(data, rng)
    actions = _actions(data)
    after = _effect(places[rows], following[rows] - origins[rows], actions[rows], rng)
    now, before = rows[known], rows[known - 1]
    return after, _effect(places[now], origins[now] - origins[before], actions[now], rng)


def _effect(places: np.ndarray, outcomes: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> float:
    """How much outcomes go with actions, both less what the place says."""
    outcomes, actions = (_less(places, columns) for columns in (outcomes, actions))
    signs = random_signs(len(places), rng)
    return dependence(([actions], signed(column, signs)) for column in outcomes.T if column.any())


def _columns(data: Transitions, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each row is, as numbers of a table or as inputs of a regression; functions of its state and of the next."""
    if data.states.ndim == 1 and data.states.dtype.kind in "iu":
        both = np.append(data.states, np.where(data.ended, data.states, data.next_states))
        _, code = np.unique(both, return_inverse=True)
        functions = rng.choice([-1.0, 1.0], size=(code.max() + 1, FUNCTIONS))
        return code[: len(data)], functions[code[: len(data)]], functions[code[len(data) :]]
    states, following = as_inputs(data.states, None), as_inputs(data.next_states, None)
    scale = states.std(axis=0)
    standard = (states - states.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    following = np.where(data.ended[:, None], states, following)
    return np.column_stack([np.ones(len(data)), standard, standard**2]), states, following


def _actions(data: Transitions) -> Float[np.ndarray, "n k"]:
    if data.actions.ndim == 1 and data.actions.dtype.kind in "iu":
        _, code = np.unique(data.actions, return_inverse=True)
        return np.eye(code.max() + 1)[code]
    return as_inputs(data.actions, None)


def _less(places: np.ndarray, columns: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "m k"]:
    """The columns less their means given the place."""
    if places.ndim == 2:
        return columns - places @ np.linalg.lstsq(places, columns, rcond=None)[0]
    counts: Int[np.ndarray, " places"] = np.maximum(np.bincount(places), 1)
    means = np.column_stack([np.bincount(places, column) for column in columns.T]) / counts[:, None]
    return columns - means[places]
