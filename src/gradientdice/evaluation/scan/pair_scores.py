"""Every row of a scanned log scored by a ratio and a Q that were learned from a sample of it.

    ρ̂ = (1−γ) E_μ0[V] + E[τ (r + γV' − Q)],     at γ = 1:  E[τ (r + V' − Q)] / E[τ],

over the rows that the sample does not have: one pass for the means, one for the shares in their error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float, Num

from gradientdice.base.errors import starts_missing
from gradientdice.default.linear_pair import LinearPair, predictions
from gradientdice.log.scanning.parts import Batch
from gradientdice.log.scanning.passes import Sums
from gradientdice.log.transitions import Transitions
from gradientdice.policies import StatePolicy
from gradientdice.problem.absorbing import row_share
from gradientdice.problem.scan.facts import COLUMNS, FactsCounter, FactsPass
from gradientdice.problem.scan.moments import BatchFeatures
from gradientdice.statistics.scan.scorers import RowScores


@dataclass(frozen=True, eq=False)
class PairRows:
    """A pair at the rows of batches, without the sample that it was learned from: workers are sent this.

    Attributes:
        discount: γ.
        ratio_params: of τ.
        value_params: of Q.
        level: a constant of Q and V.
        share: the rows' share in the data that τ is a ratio to: the rest is the absorbing state's own.
        features: of batches, as the pair has them.
    """

    discount: float
    ratio_params: Float[np.ndarray, " K"]
    value_params: Float[np.ndarray, " K"]
    level: float
    share: float
    features: BatchFeatures

    @classmethod
    def of(cls, pair: LinearPair, policy: StatePolicy, seed: int) -> PairRows:
        """From what was learned on a sample."""
        rows = pair.rows
        states = rows.data.states
        features = BatchFeatures(policy, rows.functions, seed, rows.absorbing, states.dtype, states.ndim == 2)
        share = row_share(rows.data, pair.discount)
        return cls(pair.discount, pair.ratio_params, pair.value_params, pair.level, share, features)

    @property
    def restarts(self) -> bool:
        """Whether ended episodes begin again."""
        return self.discount == 1 and self.features.absorbing

    def scores(self, data: Transitions) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """τ, and r + γV' − Q: where ended episodes restart, V' after an end is left out."""
        parts = [predictions(self.ratio_params, self.value_params, design) for _, design in self.features.chunks(data)]
        parts = parts or [(np.zeros(0),) * 3]  # of a batch without rows
        ratio, q, following = (np.concatenate(own) for own in zip(*parts, strict=True))
        return self.share * ratio, self.residual(data, q, following)

    def residual(
        self, data: Transitions, q: Float[np.ndarray, " n"], following: Float[np.ndarray, " n"]
    ) -> Float[np.ndarray, " n"]:
        """R + γV' − Q, from Q and V' without their level."""
        following = np.where(data.ended, 0.0, following) if self.restarts else following
        return data.rewards + self.discount * following - q - (1 - self.discount) * self.level

    def values(self, states: Num[np.ndarray, "m ..."]) -> Float[np.ndarray, " m"]:
        """V at some initial states."""
        params = self.value_params
        # The absorbing state's feature is 0 at a start.
        params = params[:-1] if self.features.absorbing else params
        return np.asarray(self.features.starts(states).predict(params[:, None]))[:, 0] + self.level


@dataclass(eq=False)
class PairPass(FactsPass):
    """The sums behind the value.

    Attributes:
        rows: the pair at rows.
    """

    rows: PairRows = field(kw_only=True)

    @property
    def kind(self) -> str:
        """In a word."""
        return "values"

    def counter(self) -> _Counter:
        """What sums over the rows of one part."""
        return _Counter(self)

    def start_sums(self, states: Num[np.ndarray, "m ..."], weights: Float[np.ndarray, " m"]) -> Sums:
        """Σ of their values, their weight, and their number."""
        numbers = np.array([weights.sum(), len(states)])
        return {"initial": np.array([weights @ self.rows.values(states)]), "initial_numbers": numbers}

    def as_states(self, runs: Float[np.ndarray, "m k"]) -> Num[np.ndarray, "m ..."]:
        """The first states of some runs."""
        return self.rows.features.states(runs[:, COLUMNS:])


class _Counter(FactsCounter):
    def __init__(self, work: PairPass) -> None:
        super().__init__(work)
        self._rows = work.rows
        self._scored = np.zeros(3)

    def add(self, batch: Batch) -> None:
        """Adds the rows of a batch: Σ mass, Σ mass · residual, Σ mass where an episode ended."""
        super().add(batch)
        ratio, residual = self._rows.scores(batch.data)
        mass = batch.data.row_weights * ratio
        self._scored += (mass.sum(), mass @ residual, mass[batch.data.ended].sum())

    def sums(self) -> Sums:
        """What they come to."""
        return {**super().sums(), "scored": self._scored}


@dataclass(frozen=True, eq=False)
class PairScorer:
    """The doubly robust answer of a pair.

    Attributes:
        scored: the pair at rows.
        weight: Σ of the rows' weights.
        mass: Σ weight · τ.
        score: Σ weight · τ (r + γV' − Q).
        ended: the mass of rows after which episodes restart.
        start_value: the mean of V over the initial states; None if there are none.
        start_weight: Σ of their weights.
    """

    scored: PairRows
    weight: float
    mass: float
    score: float
    ended: float
    start_value: float | None
    start_weight: float

    @classmethod
    def of(cls, rows: PairRows, sums: Sums) -> PairScorer:
        """From the sums of a pass over the log."""
        mass, score, ended = (float(part) for part in sums["scored"])
        started = float(sums["initial_numbers"][0]) if "initial" in sums else 0.0
        value = float(sums["initial"][0]) / started if started > 0 else None
        if value is None and (rows.discount < 1 or rows.restarts):
            raise starts_missing(rows.discount)
        if rows.restarts and value is not None:
            score += ended * value
        return cls(rows, float(sums["totals"][0]), mass, score, ended, value, started)

    @property
    def value(self) -> float:
        """The answer."""
        discount = self.scored.discount
        if discount == 1:
            return self.score / self.mass
        assert self.start_value is not None
        return (1 - discount) * self.start_value + self.score / self.weight

    @property
    def has_starts(self) -> bool:
        """Whether the answer depends on the initial states."""
        return self.scored.discount < 1 or self.scored.restarts

    def rows(self, data: Transitions, made: dict[str, Any] | None = None) -> RowScores:
        """The part of some rows."""
        ratio, residual = self.scored.scores(data)
        if self.scored.restarts:
            residual = residual + np.where(data.ended, self.start_value or 0.0, 0.0)
        if self.scored.discount < 1:
            shares = data.row_weights * (ratio * residual - self.score / self.weight) / self.weight
            return RowScores(ratio, shares, residual)
        residual = residual - self.value
        return RowScores(ratio, data.row_weights * ratio * residual / self.mass, residual)

    def starts(
        self, states: Num[np.ndarray, "m ..."], weights: Float[np.ndarray, " m"]
    ) -> Float[np.ndarray, " m"] | None:
        """The shares of some initial states."""
        if not self.has_starts or self.start_value is None:
            return None
        discount = self.scored.discount
        part = 1 - discount if discount < 1 else self.ended / self.mass
        return part * weights * (self.scored.values(states) - self.start_value) / self.start_weight
