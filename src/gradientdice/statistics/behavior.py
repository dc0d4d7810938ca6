"""The behaviour's value from the steps that were seen alone: cheap, and what checks use.

    ρ_γ(behaviour) = (1−γ) E[Σ_t γᵗ r_t],

estimated by the weighted mean of the episodes' discounted sums. An episode that a time limit cut shows only the first
1 − γᵀ of its discounted steps: it counts for that share, so that what was cut is taken to be like what was seen. After
an end every step pays 0. At discount 1 it is the mean reward of a step. The value that readers are shown continues
cut episodes where that matters: see `evaluation/baseline.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradientdice.log.transitions import Transitions
from gradientdice.statistics.intervals import NormalInterval


@dataclass(frozen=True)
class BehaviorValue:
    """The behaviour's value.

    Attributes:
        value: (1−γ)-normalised below discount 1, the mean reward at 1: comparable with an estimate's value.
        interval: at the confidence asked for; None with fewer than two episodes (rows, at discount 1 without episodes).
        unseen: the share of the discounted steps that lies after the time limits.
    """

    value: float
    interval: tuple[float, float] | None
    unseen: float


def behavior_value(data: Transitions, discount: float, confidence: float) -> BehaviorValue | None:
    """The behaviour's value at a discount; None below 1 if the log has no episodes in time order."""
    parts = _parts(data, discount)
    if parts is None:
        return None
    sums, mass = parts
    total = float(mass.sum())
    value = float(sums.sum()) / total
    shares = ((sums - value * mass) / total)[mass > 0]
    interval = None if len(shares) < 2 else NormalInterval().interval(value, [shares], confidence, 0)
    unseen = 0.0 if discount == 1 else max(0.0, 1 - total / _start_weight(data))
    return BehaviorValue(value, interval, unseen)


def behavior_shares(data: Transitions, discount: float) -> tuple[float, Float[np.ndarray, " units"]] | None:
    """The behaviour's value, and each independent unit's share in its error; None where there is no such value."""
    parts = _parts(data, discount)
    if parts is None:
        return None
    sums, mass = parts
    total = float(mass.sum())
    value = float(sums.sum()) / total
    shares = (sums - value * mass) / total
    return value, data.units.sums(shares, None if data.episodes is None else data.first_rows)


def _parts(data: Transitions, discount: float) -> tuple[np.ndarray, np.ndarray] | None:
    """For each episode (each row, without episodes) its weighted rewards, and the weight of the steps that it shows."""
    if discount < 1 and (data.episodes is None or data.start_states is None):
        return None
    if data.episodes is None:
        return data.row_weights * data.rewards, data.row_weights
    return _episodes(data, discount)


def _episodes(data: Transitions, discount: float) -> tuple[np.ndarray, np.ndarray]:
    """For each episode its weighted discounted rewards, and the weight of the discounted steps that it shows."""
    assert data.episodes is not None
    order = np.argsort(data.episodes, kind="stable")
    _, first, index = np.unique(data.episodes[order], return_index=True, return_inverse=True)
    if discount == 1:
        steps = data.row_weights[order]
    else:
        step = np.arange(len(data)) - first[index]
        start = data.row_weights[order][first]
        steps = (1 - discount) * discount**step * start[index]
    sums = np.bincount(index, weights=steps * data.rewards[order])
    mass = np.bincount(index, weights=steps)
    if discount < 1:
        # Nothing is unknown after an end: every step there pays 0.
        last = np.append(first[1:], len(data)) - 1
        ended = data.ended[order][last]
        mass = np.where(ended, data.row_weights[order][first], mass)
    return sums, mass


def _start_weight(data: Transitions) -> float:
    assert data.episodes is not None
    _, first = np.unique(data.episodes, return_index=True)
    return float(data.row_weights[first].sum())
