"""The states from which a learned model is simulated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from gradientdice.data.transitions import Transitions
from gradientdice.estimators.model.encoding import Encoding
from gradientdice.estimators.model.settings import ModelSettings
from gradientdice.problem.folds import Folds, counted_starts

# Initial states from which ended paths go on.
RESTARTS = 512


# Paths from logged states are a tenth of the horizon long; then they start anew from another one.
LOGGED_SHARE = 10


@dataclass(frozen=True, eq=False)
class Starts:
    """Where paths start, standardised; the networks of a fold start alike.

    Paths from initial states are as long as the horizon. Those from logged states are shorter and more: they are for
    the values at states that the policy itself seldom visits.

    Attributes:
        paths: (j, p, s) the first states: initial ones, if there are any, then logged ones.
        initial: how many of the paths start in an initial state.
        logged: (m, j, p − initial, s) the logged states to which the other paths are moved, one after the other.
        restarts: (j, r, s) initial states from which ended paths go on.
        horizon: how many steps are simulated.
        length: after how many steps the paths from logged states are moved.
    """

    paths: Float[np.ndarray, "j p s"]
    initial: int
    logged: Float[np.ndarray, "m j q s"]
    restarts: Float[np.ndarray, "j r s"]
    horizon: int
    length: int

    @classmethod
    def draw(cls, data: Transitions, encoding: Encoding, folds: Folds, settings: ModelSettings, seed: int) -> Starts:
        """Half of the paths start in initial states and half in logged ones, none of them of the fold itself."""
        rng = np.random.default_rng([seed, 0])
        states, starts, weights = encoding.states(data.states), data.start_states, data.start_weights
        initial = 0 if starts is None else settings.paths // 2
        others, length = settings.paths - initial, max(1, settings.horizon // LOGGED_SHARE)
        segments = -(-settings.horizon // length)
        paths, logged, restarts = [], [], []
        for fold in range(folds.count):
            own = states[_drawn(folds.rows != fold, data.row_weights, segments * others, rng)]
            own = own.reshape(segments, others, -1)
            first, again = own[0], own[0]
            if starts is not None and weights is not None:
                known = encoding.states(starts)
                chosen = known[_drawn(counted_starts(folds.initial != fold, weights), weights, initial + RESTARTS, rng)]
                first, again = np.concatenate([chosen[:initial], first]), chosen[initial:]
            paths += [first] * settings.members
            logged += [own[1:]] * settings.members
            restarts += [again] * settings.members
        moved = np.stack(logged, axis=1)
        return cls(np.stack(paths), initial, moved, np.stack(restarts), settings.horizon, length)


def _drawn(
    allowed: Bool[np.ndarray, " n"], weights: Float[np.ndarray, " n"], count: int, rng: np.random.Generator
) -> Int[np.ndarray, " m"]:
    """Rows in proportion to their weights, evenly spread over the log, in a random order."""
    rows = np.flatnonzero(allowed & (weights > 0))
    reached = np.cumsum(weights[rows]) / weights[rows].sum()
    places = (rng.permutation(count) + rng.random()) / count
    return rows[np.minimum(np.searchsorted(reached, places), len(rows) - 1)]
