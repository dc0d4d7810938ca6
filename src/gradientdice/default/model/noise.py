"""The noise of a simulated step: errors that the networks made at rows which they did not learn from.

A network's error there is noise and its own inaccuracy; the errors of two networks at the same row share the noise
only, so that the mean of their product is the noise's variance. Where that is below a twentieth of the target's
variance the dynamics count as deterministic. Rewards get no noise: it would change no expected return.

Errors are seldom alike everywhere. A pole that is falling, or a foot that touches the ground, is hard to predict, and
the same system in balance is not: with errors of the one drawn for the other, it would fall. The size of the error is
therefore regressed on the network's last layer, the held-out rows are grouped by it, and a step draws from the group
of rows where errors are of the size expected there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float, Int

# Errors that networks share are also what none of them can learn: in contact-rich deterministic tasks up to 3%.
NOISE_FLOOR = 0.05
# Groups of rows, each of which has at least so many different ones.
MOST_GROUPS, FEWEST_ROWS = 8, 60
# Draws of each group.
DRAWS = 256
# Sizes below this share of the mean size count alike, and a ridge in units of the features' mean square.
SMALLEST_SIZE, SIZE_RIDGE = 1e-4, 0.1


class LocalNoise(eqx.Module):
    """Noise in the networks' units, for each network.

    Attributes:
        size: (…, m) the logarithm of the expected size of the error is linear in the network's features.
        cuts: (…, G − 1) between the groups.
        draws: (…, G, d, s) errors of each group.
    """

    size: Float[Array | np.ndarray, "*j m"]
    cuts: Float[Array | np.ndarray, "*j c"]
    draws: Float[Array | np.ndarray, "*j g d s"]

    def __call__(self, features: Any, numbers: Any) -> Any:
        """Noise at rows with these features (n, m): the draws of these numbers (n,) of each row's group."""
        group = (features @ self.size)[:, None] > self.cuts
        return self.draws[group.sum(axis=1), numbers]


@dataclass(frozen=True, eq=False)
class NoisyRows:
    """What a fold's networks made of some rows.

    Attributes:
        rows: which rows of the log; some may be there several times.
        features: of each network.
        errors: target less output.
    """

    rows: Int[np.ndarray, " n"]
    features: Float[np.ndarray, "members n m"]
    errors: Float[np.ndarray, "members n s"]


def noisy_numbers(errors: Float[np.ndarray, "members n s"]) -> Bool[np.ndarray, " s"]:
    """Which numbers of the state have noise, by the errors at held-out rows."""
    return _shared(errors) > NOISE_FLOOR


def local_noise(learned_from: NoisyRows, held_out: NoisyRows, rng: np.random.Generator) -> LocalNoise:
    """The noise of one fold's networks.

    Args:
        learned_from: rows that they learned from, which show where errors are large.
        held_out: rows that they did not learn from, whose errors are drawn.
        rng: for the draws.
    """
    noisy, errors = noisy_numbers(held_out.errors), held_out.errors
    members, _, count = held_out.features.shape
    groups = min(MOST_GROUPS, len(np.unique(held_out.rows)) // FEWEST_ROWS) if noisy.any() else 0
    if groups < 2:
        draws = np.repeat(_drawn(errors, noisy, rng)[None, None], members, axis=0)
        return LocalNoise(np.zeros((members, count), np.float32), np.zeros((members, 0), np.float32), draws)
    logarithm = _logarithm(learned_from.errors[..., noisy])
    sizes, cuts, draws = [], [], []
    for own, checked in zip(learned_from.features, held_out.features, strict=True):
        size = _size(own.astype(np.float64), logarithm)
        expected = checked @ size
        between = np.quantile(expected, np.arange(1, groups) / groups)
        group = np.searchsorted(between, expected)
        sizes.append(size)
        cuts.append(between)
        draws.append(np.stack([_drawn(errors[:, group == number], noisy, rng) for number in range(groups)]))
    sizes, cuts, draws = (np.stack(parts).astype(np.float32) for parts in (sizes, cuts, draws))
    return LocalNoise(sizes, cuts, draws)


def stacked_noise(folds: Sequence[LocalNoise]) -> LocalNoise:
    """That of all networks; folds with fewer groups than others repeat their last one."""
    most = max(noise.draws.shape[1] for noise in folds)
    sizes, cuts, draws = [], [], []
    for noise in folds:
        lacking = most - noise.draws.shape[1]
        sizes.append(noise.size)
        cuts.append(np.pad(noise.cuts, ((0, 0), (0, lacking)), constant_values=np.inf))
        draws.append(np.pad(noise.draws, ((0, 0), (0, lacking), (0, 0), (0, 0)), mode="edge"))
    return LocalNoise(np.concatenate(sizes), np.concatenate(cuts), np.concatenate(draws))


def _logarithm(errors: Float[np.ndarray, "members n s"]) -> Float[np.ndarray, " n"]:
    square = np.mean(errors.mean(axis=0) ** 2, axis=1)
    return np.log(square + SMALLEST_SIZE * square.mean() + np.finfo(np.float32).tiny)


def _size(features: Float[np.ndarray, "n m"], sizes: Float[np.ndarray, " n"]) -> Float[np.ndarray, " m"]:
    """Ridge regression; the constant, which comes last, has no ridge."""
    scale = np.sqrt(np.mean(features**2, axis=0))
    x = features / np.where(scale > 0, scale, 1.0)
    ridge = np.full(x.shape[1], SIZE_RIDGE)
    ridge[-1] = 1e-9
    solved = np.linalg.solve(x.T @ x / len(x) + np.diag(ridge), x.T @ sizes / len(x))
    return solved / np.where(scale > 0, scale, 1.0)


def _shared(errors: Float[np.ndarray, "members n s"]) -> Float[np.ndarray, " s"]:
    """The noise's variance: the mean product of two networks' errors."""
    pairs = list(combinations(range(len(errors)), 2)) or [(0, 0)]
    return np.mean([np.mean(errors[a] * errors[b], axis=0) for a, b in pairs], axis=0)


def _drawn(
    errors: Float[np.ndarray, "members n s"], noisy: np.ndarray, rng: np.random.Generator
) -> Float[np.ndarray, "d s"]:
    """Errors of the ensemble's mean, scaled in each dimension to the variance of the noise."""
    if not errors.shape[1]:
        return np.zeros((DRAWS, errors.shape[2]), np.float32)
    mean = errors.mean(axis=0)
    mean = mean - mean.mean(axis=0)
    shared, own = _shared(errors), np.mean(mean**2, axis=0)
    shared = np.where(noisy & (shared > NOISE_FLOOR), shared, 0.0)
    scaled = mean * np.sqrt(shared / np.where(own > 0, own, 1.0))
    return scaled[rng.integers(len(scaled), size=DRAWS)].astype(np.float32)
