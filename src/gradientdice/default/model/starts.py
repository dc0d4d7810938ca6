"""The states from which a learned model is simulated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from gradientdice.default.model.encoding import Encoding
from gradientdice.default.model.settings import ModelSettings
from gradientdice.log.transitions import Transitions
from gradientdice.problem.folds import Folds, counted_starts

# Initial states from which ended paths go on.
RESTARTS = 512


# Paths from logged states are a tenth of the horizon long; then they start anew from another one.
LOGGED_SHARE = 10


@dataclass(frozen=True, eq=False)
class Starts:
    """Where paths start, standardised; the networks of a fold start alike.

    Half of the paths are as long as the horizon and start in initial states; without any, in logged ones. The others
    are shorter and more, from logged states: they are for the values where the policy itself seldom goes.

    Attributes:
        paths: (j, p, s) the first states, those of the long paths first.
        long: how many of the paths are long.
        logged: (m, j, p − long, s) the logged states to which the other paths are moved, one after the other.
        restarts: (j, r, s) initial states from which ended paths go on.
        horizon: how many steps are simulated.
        length: after how many steps the paths from logged states are moved.
    """

    paths: Float[np.ndarray, "j p s"]
    long: int
    logged: Float[np.ndarray, "m j q s"]
    restarts: Float[np.ndarray, "j r s"]
    horizon: int
    length: int

    @classmethod
    def draw(cls, data: Transitions, encoding: Encoding, folds: Folds, settings: ModelSettings, seed: int) -> Starts:
        """Draws the states of each fold's networks, none of them of the fold itself."""
        rng = np.random.default_rng([seed, 0])
        states, starts, weights = encoding.states(data.states), data.start_states, data.start_weights
        long, length = settings.paths // 2, max(1, settings.horizon // LOGGED_SHARE)
        others, segments = settings.paths - long, -(-settings.horizon // length)
        paths, logged, restarts = [], [], []
        for fold in range(folds.count):
            drawn = states[_drawn(folds.rows != fold, data.row_weights, segments * others, rng)]
            own = drawn.reshape(segments, others, -1)
            if starts is None or weights is None:
                chosen = states[_drawn(folds.rows != fold, data.row_weights, long + RESTARTS, rng)]
            else:
                allowed = counted_starts(folds.initial != fold, weights)
                chosen = encoding.states(starts)[_drawn(allowed, weights, long + RESTARTS, rng)]
            first, again = np.concatenate([chosen[:long], own[0]]), chosen[long:]
            paths += [first] * settings.members
            logged += [own[1:]] * settings.members
            restarts += [again] * settings.members
        moved = np.stack(logged, axis=1)
        return cls(np.stack(paths), long, moved, np.stack(restarts), settings.horizon, length)


def _drawn(
    allowed: Bool[np.ndarray, " n"], weights: Float[np.ndarray, " n"], count: int, rng: np.random.Generator
) -> Int[np.ndarray, " m"]:
    """Rows in proportion to their weights, evenly spread over the log, in a random order."""
    rows = np.flatnonzero(allowed & (weights > 0))
    reached = np.cumsum(weights[rows]) / weights[rows].sum()
    places = (rng.permutation(count) + rng.random()) / count
    return rows[np.minimum(np.searchsorted(reached, places), len(rows) - 1)]
