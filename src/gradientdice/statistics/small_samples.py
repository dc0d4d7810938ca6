"""Shares of the error where a table has few rows for each pair.

A table fits each pair's mean to the pair's own rows, so that their residuals are too small: with m rows, their variance
is (m−1)/m of the noise's. Each row's share is therefore divided by √(1 − h), where h is the row's part in its pair's
weight: 1/m without weights. A pair that was logged once has residual 0, whatever the noise; the noise of the other
pairs, pooled, takes its place, with a random sign.

This is for the interval alone. The influence values remain the derivative of the estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from gradientdice.functions import Tabular
from gradientdice.log.copies import mixed
from gradientdice.problem.problem import Problem
from gradientdice.statistics.influence import Influence
from gradientdice.statistics.intervals import independent_shares
from gradientdice.statistics.shares import EachShare

# Shares of a pair that add up to less than this part of the error were fitted by the pair's own mean.
FITTED = 1e-6
ROUNDING = 1e-12


def interval_shares(influence: Influence, problem: Problem) -> EachShare:
    """The shares by independent unit, corrected for pairs with few rows where a table fitted their means."""
    rows = None if problem.support is None else _pair_rows(influence, problem)
    fitted = None if rows is None else PairSums.of(rows).fitted(float(np.abs(problem.data.rewards).max()))
    if rows is None or fitted is None:
        return independent_shares(influence, problem.data)
    shares = independent_shares(replace(influence, rows=fitted.corrected(rows)), problem.data)
    # Random signs need not cancel, and methods that resample or reweight the shares need a mean of 0.
    return [of_one - of_one.mean() for of_one in shares] if rows.once.any() else shares


@dataclass(frozen=True, eq=False)
class PairRows:
    """Some rows of a table's log, as members of their pairs.

    Attributes:
        pair: (n,) the number of each row's pair.
        leverage: (n,) each row's part in the weight of its pair, with that of its exact copies.
        shares: (n,) its share in the error.
        mass: (n,) weight · ratio / total weight.
        residual: (n,) r + γV' − Q.
    """

    pair: Int[np.ndarray, " n"]
    leverage: Float[np.ndarray, " n"]
    shares: Float[np.ndarray, " n"]
    mass: Float[np.ndarray, " n"]
    residual: Float[np.ndarray, " n"]

    @property
    def once(self) -> Bool[np.ndarray, " n"]:
        """Whether a row is the only one of its pair."""
        return self.leverage > 1 - 1e-9


@dataclass(frozen=True, eq=False)
class PairSums:
    """Sums over rows of what the correction reads; those of two parts of a log add up.

    Attributes:
        of_pairs: (P,) the sum of each pair's shares.
        totals: Σ share², Σ share · mass · residual, Σ (mass · residual)², Σ mass², and over the rows of pairs that have
            others Σ share² / (1 − h) and Σ mass².
    """

    of_pairs: Float[np.ndarray, " P"]
    totals: Float[np.ndarray, " totals"]

    @classmethod
    def of(cls, rows: PairRows, copies: Float[np.ndarray, " n"] | None = None, pairs: int = 0) -> PairSums:
        """The sums over some rows, each as often as `copies` says."""
        counts = np.ones(len(rows.pair)) if copies is None else copies
        shares, with_residual, repeated = rows.shares, rows.mass * rows.residual, ~rows.once
        noise = np.divide(shares**2, 1 - rows.leverage, out=np.zeros(len(shares)), where=repeated)
        squares = (shares**2, shares * with_residual, with_residual**2, rows.mass**2, noise, repeated * rows.mass**2)
        return cls(
            np.bincount(rows.pair, shares * counts, minlength=pairs), np.array([counts @ part for part in squares])
        )

    def __add__(self, other: PairSums) -> PairSums:
        return PairSums(self.of_pairs + other.of_pairs, self.totals + other.totals)

    def fitted(self, largest_reward: float) -> FittedPairs | None:
        """How the shares are corrected; None if the rows were not fitted by the pairs' own means."""
        size, along, length, mass, noise, known = (float(total) for total in self.totals)
        # Rounding, where all residuals are 0.
        least = ROUNDING * np.sqrt(mass) * largest_reward
        if np.abs(self.of_pairs).max() > max(FITTED * np.sqrt(size), least):
            return None
        # Estimators differ in what their ratio is one to, by a constant.
        unit = along / length if length > least**2 else 1.0
        return FittedPairs(unit * np.sqrt(noise / (unit**2 * known)) if known > 0 and unit != 0 else 0.0)


@dataclass(frozen=True)
class FittedPairs:
    """How the shares of a table's rows are made as large as the noise is.

    Attributes:
        noise: the share of a row of mass 1 whose pair has no other: the noise of the other pairs, pooled.
    """

    noise: float

    def corrected(self, rows: PairRows) -> Float[np.ndarray, " n"]:
        """The shares of some rows; those of rows without others in their pair stay where no noise is known."""
        once = rows.once
        shares = rows.shares / np.sqrt(np.where(once, 1.0, 1 - rows.leverage))
        if self.noise and once.any():
            # Signs are random so that the shares of an episode add their variances; a pair has its own, wherever its
            # row is.
            signs = 1.0 - 2.0 * (mixed(rows.pair[once].astype(np.uint64)) % np.uint64(2))
            shares[once] = signs * self.noise * rows.mass[once]
        return shares


def _pair_rows(influence: Influence, problem: Problem) -> PairRows:
    assert isinstance(problem.functions, Tabular)
    pair, leverage = problem.log_parts.pairs(problem.functions).leverage
    weights = problem.data.row_weights
    return PairRows(pair, leverage, influence.rows, weights * influence.ratio / weights.sum(), influence.residual)
