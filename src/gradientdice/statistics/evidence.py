"""What an estimator hands to the verdict beside its value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """All that the diagnostics read which only the estimator (or the front door) can know.

    Attributes:
        mean_ratio: the mean of the ratio, the absorbing state's share included: 1 if all is well. None without one.
        density: (n,) how much denser than the log the target is at each row, where the ratio also counts time.
        bellman: whether the influence's residual is r + γV' − Q of a Q that depends on the functions, so that their
            misfit can be tested.
        markov: whether the value is right only if the recorded state is the whole state. Importance weights over whole
            trajectories do not need that.
        misfit: the Bellman misfit, in standard deviations of noise; None where it is not known and may be tested.
        flow: the held-out flow residual, in standard deviations of noise; None where it is not known.
        unlogged: the share of the policy's steps that the log does not contain; None where that is not known.
        left: the share of steps simulated in a learned model that would have left the log's range; None where the
            answer does not rest on them.
        outlived: how many times more of the policy's steps come before an end in the learned model than in the ratio,
            or the other way round; None where the answer does not rest on a model, and without ends.
        allowance: how much the interval is widened on both sides for the misfit of searched functions.
        unlogged_error: how much it is widened on both sides for steps and outcomes that a table's log does not contain.
        room: how much wider the interval is than chance alone would make it, on the side where that is less: the
            allowance, and what it spans beside.
    """

    mean_ratio: float | None = None
    density: Float[np.ndarray, " n"] | None = None
    bellman: bool = False
    markov: bool = True
    misfit: float | None = None
    flow: float | None = None
    unlogged: float | None = None
    left: float | None = None
    outlived: float | None = None
    allowance: float = 0.0
    unlogged_error: float = 0.0
    room: float = 0.0
