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

from gradientdice.inference.influence import Influence
from gradientdice.inference.intervals import Samples, independent_shares
from gradientdice.problem.problem import Problem

# Shares of a pair that add up to less than this part of the error were fitted by the pair's own mean.
FITTED = 1e-6
ROUNDING = 1e-12


def interval_shares(influence: Influence, problem: Problem) -> Samples:
    """The shares by independent unit, corrected for pairs with few rows where a table fitted their means."""
    _, shares = problem.once(("shares", id(influence)), lambda: (influence, _interval_shares(influence, problem)))
    return shares


def _interval_shares(influence: Influence, problem: Problem) -> Samples:
    pairs = FittedPairs.of(influence, problem)
    if pairs is None:
        return independent_shares(influence, problem.data)
    shares = independent_shares(pairs.corrected(influence), problem.data)
    # Random signs need not cancel, and methods that resample or reweight the shares need a mean of 0.
    return [of_one - of_one.mean() for of_one in shares] if pairs.once.any() else shares


@dataclass(frozen=True, eq=False)
class FittedPairs:
    """The rows of a table's pairs.

    Attributes:
        leverage: (n,) each row's part in the weight of its pair, with that of its exact copies.
        mass: (n,) weight · ratio, in the units of the shares: share = mass · residual.
    """

    leverage: Float[np.ndarray, " n"]
    mass: Float[np.ndarray, " n"]

    @classmethod
    def of(cls, influence: Influence, problem: Problem) -> FittedPairs | None:
        """The pairs; None if it is no table, or the rows were not fitted by the pairs' own means."""
        if problem.support is None:
            return None
        data = problem.data
        pair, leverage = problem.once_for_log(("leverage", problem.functions), lambda: _leverage(problem))
        shares, weights = influence.rows, data.row_weights
        product = weights * influence.ratio / weights.sum()
        with_residual = product * influence.residual
        # Rounding, where all residuals are 0.
        least = ROUNDING * float(np.linalg.norm(product)) * float(np.abs(data.rewards).max())
        if np.abs(np.bincount(pair, shares)).max() > max(FITTED * float(np.linalg.norm(shares)), least):
            return None
        # Estimators differ in what their ratio is one to, by a constant.
        size = float(with_residual @ with_residual)
        unit = float(shares @ with_residual) / size if size > least**2 else 1.0
        return cls(leverage, unit * product)

    @property
    def once(self) -> Bool[np.ndarray, " n"]:
        """Whether a row is the only one of its pair."""
        return self.leverage > 1 - 1e-9

    def corrected(self, influence: Influence) -> Influence:
        """The influence values with the rows' shares as large as the noise is."""
        once = self.once
        shares = influence.rows / np.sqrt(np.where(once, 1.0, 1 - self.leverage))
        known = float(self.mass[~once] @ self.mass[~once])
        if once.any() and known > 0:
            noise = np.sqrt(float(shares[~once] @ shares[~once]) / known)
            # Signs are random so that the shares of an episode add their variances.
            signs = np.random.default_rng(0).choice([-1.0, 1.0], size=int(once.sum()))
            shares[once] = signs * noise * self.mass[once]
        return replace(influence, rows=shares)


def _leverage(problem: Problem) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """The pair of each row of a table's log, and its part in the weight of the pair, with that of its copies."""
    assert problem.support is not None
    data, table = problem.data, problem.support.table
    pair, weights = table.index(data.states) * table.table.num_actions + data.actions, data.row_weights
    total = np.bincount(pair, weights)[pair]
    # A row and its exact copies are one observation.
    own = np.bincount(data.units.original, weights, minlength=len(data))[data.units.original]
    return pair, np.divide(own, total, out=np.zeros_like(total), where=total > 0)
