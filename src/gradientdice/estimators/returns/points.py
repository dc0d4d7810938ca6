"""A distribution function on a few points, and what episodes contribute to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

# More different returns than this are gathered into groups of equal weight, each at its mean: finer than the noise of
# some thousand episodes.
MOST_POINTS, FEWEST_POINTS = 512, 64
# With very many episodes the points are fewer, so that their shares take no more than so many numbers.
MOST_SHARES = 20_000_000
# Weights of so many numbers are drawn at a time.
BLOCK_NUMBERS = 4_000_000
# Sums of the same rewards in another order differ by this share of their size.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class StepFunction:
    """A distribution function and its error.

    Attributes:
        points: (m,) the returns at which it may jump, ascending.
        cdf: (m,) the probability of a return of at most each point.
        shares: (u, m) the share of each independent unit in its error; they add up to 0. None without sampling error.
        ends: the functions if all that was cut off had paid the least, and the most, that it can; None if nothing was.
    """

    points: Float[np.ndarray, " m"]
    cdf: Float[np.ndarray, " m"]
    shares: Float[np.ndarray, "u m"] | None = None
    ends: tuple[StepFunction, StepFunction] | None = None

    @property
    def mean(self) -> float:
        """The mean return."""
        return float(masses(self.cdf) @ self.points)

    @property
    def variance(self) -> float:
        """The return's variance."""
        return float(masses(self.cdf) @ (self.points - self.mean) ** 2)

    def quantile(self, level: float) -> float:
        """The smallest return that is reached or undercut with at least this probability."""
        place = int(np.searchsorted(self.cdf, level - 1e-12))
        return float(self.points[min(place, len(self.points) - 1)])

    def cvar(self, level: float) -> float:
        """The mean of the lowest returns that have this probability together."""
        below = np.minimum(self.cdf, level)
        return float(masses(below) @ self.points) / level

    def moves(self, replications: int, seed: int) -> Float[np.ndarray, "b m"]:
        """How far the function moves, to first order, if the units get exponential weights."""
        assert self.shares is not None
        rng, units = np.random.default_rng(seed), len(self.shares)
        moved, block = np.empty((replications, len(self.points))), max(1, BLOCK_NUMBERS // units)
        for begin in range(0, replications, block):
            weights = rng.standard_exponential((min(block, replications - begin), units))
            moved[begin : begin + block] = weights @ self.shares / weights.mean(axis=1, keepdims=True)
        return moved


def masses(cdf: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
    """The probability of each point."""
    return np.diff(cdf, prepend=0.0)


def monotone(cdf: Float[np.ndarray, "*b m"]) -> Float[np.ndarray, "*b m"]:
    """A distribution function that is no further from the true one: its values in [0, 1], sorted, and 1 at the end."""
    sorted_values = np.sort(np.clip(cdf, 0.0, 1.0), axis=-1)
    sorted_values[..., -1] = 1.0
    return sorted_values


def representative(returns: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"]) -> Float[np.ndarray, " m"]:
    """The different returns, or where there are too many, means of groups of about equal weight."""
    order = np.argsort(returns, kind="stable")
    values, own = returns[order], weights[order]
    scale = max(float(np.abs(values).max()), 1e-300)
    new = np.concatenate([[True], np.diff(values) > ROUNDING * scale])
    group = np.cumsum(new) - 1
    most = min(MOST_POINTS, max(FEWEST_POINTS, MOST_SHARES // len(values)))
    if group[-1] >= most:
        reached = np.cumsum(own) - own / 2
        group = np.minimum((most * reached / own.sum()).astype(np.int64), most - 1)
        # Equal returns stay together.
        starts = np.flatnonzero(new)
        group = np.repeat(group[starts], np.diff(np.append(starts, len(values))))
        _, group = np.unique(group, return_inverse=True)
    # Groups without weight, whose returns never have any, are at their plain mean.
    total = np.bincount(group, own)
    used = np.where((total > 0)[group], own, 1.0)
    return np.bincount(group, used * values) / np.bincount(group, used)


def places(returns: Float[np.ndarray, " n"], points: Float[np.ndarray, " m"]) -> np.ndarray:
    """The nearest of the points to each return."""
    middle = (points[1:] + points[:-1]) / 2
    return np.searchsorted(middle, returns)
