"""How far a table's answer may be off where the log does not show what the policy does or what happens then.

Where an action is never logged, the log's own actions are used. With d̃ the occupancy of that restricted policy, the
policy's value differs from its value by

    Σ_s d̃(s) Σ_{a unlogged} π(a|s) (Q(s,a) − Q(s, the log's own action)),

exactly (the performance difference; both sides are (1−γ)-normalised, and Q is not). A step that was sent from a state
without rows to a start adds γ (V(there) − V(start)). The sum of the weights is the share of unlogged steps, and the
differences are at most the range of Q, for which that over all logged pairs is used. An action that is unlike all that
was logged may do more: nothing in the log can tell, which is why the share has thresholds of its own.

Where all rows of each pair agree, r + γV' − Q is 0 in every row and the interval has no width from them. A pair logged
once always agrees with itself; only repeats can disagree. If k repeats agree, another outcome has, at the given
confidence, at most the probability −log(1 − confidence)/k in a step (the rule of three), and it changes the value by at
most that share of the range of Q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from gradientdice.data.transitions import Transitions
from gradientdice.inference.checks import Check, below
from gradientdice.problem.empirical import TabularSolution

# Residuals below this share of the range of Q are 0 but for rounding.
ROUNDING = 1e-9


@dataclass(frozen=True)
class UnloggedError:
    """How much an interval is widened on both sides for what the log does not contain.

    Attributes:
        steps: for steps that were never logged.
        outcomes: for outcomes that were never seen, where all rows of each pair agree.
    """

    steps: float
    outcomes: float

    @property
    def total(self) -> float:
        """Both together."""
        return self.steps + self.outcomes

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know of each that is not 0."""
        notes = []
        if self.steps:
            notes.append(
                f"the interval is widened by {self.steps:.2g} on both sides for the steps that were never logged: "
                "their share times the range of Q over the logged pairs"
            )
        if self.outcomes:
            notes.append(
                f"all rows of each state and action agree, so that nothing looks random; the interval is widened by "
                f"{self.outcomes:.2g} on both sides for outcomes too rare to have been seen"
            )
        return tuple(notes)


def unlogged_error(
    solved: TabularSolution, unlogged: float, repeats: Int[np.ndarray, " n"], confidence: float
) -> UnloggedError:
    """What the interval of a table's answer leaves out.

    Args:
        solved: the empirical MDP's solution.
        unlogged: the share of the policy's steps that the log does not contain.
        repeats: (n,) how many rows have the pair of each row.
        confidence: of the interval.
    """
    used = solved.ratio > 0
    outcomes = 0.0
    if np.abs(solved.residual[used]).max(initial=0.0) <= ROUNDING * solved.spread:
        # Each pair's first row agrees with itself: of m rows m − 1 could have disagreed.
        agreed = float(np.sum(1 - 1 / repeats[used]))
        share = -math.log(1 - confidence) / agreed if agreed > 0 else 1.0
        outcomes = min(1.0, share) * solved.spread
    return UnloggedError(unlogged * solved.spread, outcomes)


def pair_rows(data: Transitions) -> Int[np.ndarray, " n"]:
    """How many rows have the state and action of each row; rows of weight 0 count themselves only."""
    counted = data.row_weights > 0
    pairs = np.unique(np.column_stack([data.states, data.actions]), axis=0, return_inverse=True)[1].ravel()
    return np.maximum(np.bincount(pairs, weights=counted).astype(np.int64)[pairs], 1)


def once_logged(data: Transitions, ratio: Float[np.ndarray, " n"]) -> Check:
    """The share of the target's mass on pairs that have one row, which says nothing of how its outcome varies."""
    mass = np.abs(data.row_weights * ratio)
    total = float(mass.sum())
    alone = float(mass[pair_rows(data) == 1].sum())
    # On random tables (60 to 400 pairs, 150 to 2,500 rows) 95% intervals cover in 96% of the logs where nothing is
    # logged once, in 93% where that share is below 0.03 and in 88% to 91% beyond 0.1.
    return below(
        "steps that were logged once",
        alone / total if total > 0 else 0.0,
        0.03,
        0.3,
        "share of the policy's steps with a state and action that only one row has: how they vary is unknown",
        "log more data there, or use features that generalise",
    )
