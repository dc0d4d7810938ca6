"""What an answer says of rows that are not in memory when it is found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from jaxtyping import Float, Int, Num

from gradientdice.dice.solution import LinearFit
from gradientdice.functions import FittedKernel
from gradientdice.log.transitions import Transitions
from gradientdice.problem.design import Design
from gradientdice.problem.moments import Moments
from gradientdice.problem.scan.cells import CellCodes, CellPlaces
from gradientdice.problem.scan.counted import CountedLog
from gradientdice.problem.scan.moments import BatchFeatures
from gradientdice.problem.scan.written import ChunkMemory
from gradientdice.statistics.influence import Influence, row_influence, start_direction
from gradientdice.statistics.small_samples import FittedPairs, PairRows


class RowScores(NamedTuple):
    """Some rows' part in an answer.

    Attributes:
        ratio: τ, a ratio to the rows alone.
        shares: their shares in the error.
        residual: r + γV' − Q.
    """

    ratio: Float[np.ndarray, " n"]
    shares: Float[np.ndarray, " n"]
    residual: Float[np.ndarray, " n"]


class Scorer(Protocol):
    """From rows to their part in an answer."""

    @property
    def has_starts(self) -> bool:
        """Whether the answer depends on the initial states."""
        ...

    def rows(self, data: Transitions, made: dict[str, Any] | None = None) -> RowScores:
        """The part of some rows; what other scorers of the same rows may use too is kept in `made`."""
        ...

    def starts(
        self, states: Num[np.ndarray, "m ..."], weights: Float[np.ndarray, " m"]
    ) -> Float[np.ndarray, " m"] | None:
        """The shares of some initial states; None if the answer does not depend on them."""
        ...


@dataclass(frozen=True, eq=False)
class TableScorer:
    """An answer over a table: a row's share is that of its cell, moved by how far its reward is from the cell's mean.

    Attributes:
        codes: of the cells.
        counted: the log that was answered, one row per cell.
        influence: the answer's influence values on it.
        ratio: the answer's ratio on it.
        fitted: how the shares are corrected for pairs with few rows; None leaves them.
    """

    codes: CellCodes
    counted: CountedLog
    influence: Influence
    ratio: Float[np.ndarray, " C"]
    fitted: FittedPairs | None = None

    @cached_property
    def _places(self) -> CellPlaces:
        return CellPlaces(self.codes, self.codes.of(self.counted))

    @cached_property
    def _pair(self) -> Int[np.ndarray, " C"]:
        """The pair of each cell, numbered as those of a log in memory."""
        _, state = np.unique(self.counted.states, return_inverse=True)
        return state * self.codes.table.num_actions + self.counted.actions

    @cached_property
    def _pair_weight(self) -> Float[np.ndarray, " P"]:
        return np.bincount(self._pair, self.counted.row_weights)

    @cached_property
    def _per_weight(self) -> Float[np.ndarray, " C"]:
        """The share of a row of weight 1 that pays the cell's mean reward."""
        return _quotient(self.influence.rows, self.counted.row_weights)

    @cached_property
    def _slope(self) -> Float[np.ndarray, " C"]:
        """How much more a row of weight 1 has for each unit of reward."""
        return self.ratio / self.counted.row_weights.sum()

    @property
    def num_pairs(self) -> int:
        """How many numbers of pairs there are."""
        return len(self._pair_weight)

    def own_cells(self, cell: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """Cells of the whole table as those of this answer."""
        return cell

    def rows(self, data: Transitions, made: dict[str, Any] | None = None) -> RowScores:
        """The part of some rows."""
        return self.of_cells(self._places.find(self.codes.of(data)), data.rewards, data.row_weights)

    def of_cells(
        self, cell: Int[np.ndarray, " n"], rewards: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
    ) -> RowScores:
        """The part of rows whose cells are known."""
        rows = self.pair_rows(cell, rewards, weights)
        shares = rows.shares if self.fitted is None else self.fitted.corrected(rows)
        return RowScores(self.ratio[cell], shares, rows.residual)

    def pair_rows(
        self, cell: Int[np.ndarray, " n"], rewards: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
    ) -> PairRows:
        """The same rows as members of their pairs, not corrected."""
        counted = self.counted
        apart = rewards - counted.rewards[cell]
        shares = weights * (self._per_weight[cell] + self._slope[cell] * apart)
        pair = self._pair[cell]
        leverage = _quotient(weights, self._pair_weight[pair])
        mass = weights * self.influence.ratio[cell] / counted.row_weights.sum()
        return PairRows(pair, leverage, shares, mass, self.influence.residual[cell] + apart)

    def rows_of_pairs(self, data: Transitions) -> PairRows:
        """Some rows as members of their pairs, not corrected."""
        return self.pair_rows(self._places.find(self.codes.of(data)), data.rewards, data.row_weights)

    @property
    def has_starts(self) -> bool:
        """Whether the answer depends on the initial states."""
        counted = self.counted
        return not (self.influence.initial is None or counted.initial_states is None or counted.start_weights is None)

    def starts(self, states: Num[np.ndarray, " m"], weights: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"] | None:
        """The shares of some initial states."""
        known, counts = self.counted.initial_states, self.counted.start_weights
        if self.influence.initial is None or known is None or counts is None:
            return None
        order = np.argsort(known)
        place = order[np.searchsorted(known[order], states)]
        return weights * _quotient(self.influence.initial, counts)[place]


@dataclass(frozen=True, eq=False)
class ProcessScorer(TableScorer):
    """An answer over the table's states alone: that of the behaviour, whose log has no actions to choose.

    Attributes:
        merged: (C,) the cell of each cell of the table, without its action.
    """

    merged: Int[np.ndarray, " C"] = field(kw_only=True)

    def own_cells(self, cell: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """Cells of the whole table without their actions."""
        return self.merged[cell]


@dataclass(frozen=True, eq=False)
class LinearScorer:
    """A closed-form answer with linear features.

    Attributes:
        fit: the fit.
        moments: the log's, the absorbing state's among them.
        features: of batches.
        row_share: the log's share of all weight, the absorbing state's own row included.
    """

    fit: LinearFit
    moments: Moments
    features: BatchFeatures
    row_share: float

    def rows(self, data: Transitions, made: dict[str, Any] | None = None) -> RowScores:
        """The part of some rows; fits to the same features share these, one after the other."""
        ratio, raw, residual = np.empty((3, len(data)))
        for rows, design in self._chunks(data, made):
            found = row_influence(self.fit, design)
            ratio[rows], raw[rows], residual[rows] = found.ratio, found.raw, found.residual
        shares = data.row_weights * (raw - self._mean) / self.fit.moments.weight
        return RowScores(self.row_share * ratio, shares, residual)

    def _chunks(self, data: Transitions, made: dict[str, Any] | None) -> Iterable[tuple[slice, Design]]:
        """Feature rows, some at a time; all are kept only where another fit may want them."""
        if made is None:
            memory = ChunkMemory(absorbing=self.features.absorbing)
            return self._on_device(data) or self.features.written(data, [memory])
        features, chunks = made.get("design", (None, ()))
        if features is not self.features:
            chunks = self._on_device(data) or list(self.features.chunks(data))
            made["design"] = (self.features, chunks)
        return chunks

    def _on_device(self, data: Transitions) -> list[tuple[slice, Design]]:
        """All rows as a device makes them; empty for NumPy."""
        # Features that a function gives would be sent to a device for nothing but a few products.
        kernel = isinstance(self.features.functions, FittedKernel)
        device = self.features.device_for(data) if kernel else None
        return [] if device is None else [(slice(None), self.features.on_device(data, device))]

    @property
    def has_starts(self) -> bool:
        """Whether the answer depends on the initial states."""
        return self.moments.initial is not None and (self.fit.discount < 1 or self._restarts)

    @property
    def _restarts(self) -> bool:
        """Whether ended episodes begin again."""
        return self.features.absorbing and self.fit.discount == 1

    def starts(
        self, states: Num[np.ndarray, "m ..."], weights: Float[np.ndarray, " m"]
    ) -> Float[np.ndarray, " m"] | None:
        """The shares of some initial states."""
        initial = self.moments.initial
        if initial is None or not self.has_starts:
            return None
        restart = self._restarts
        direction = start_direction(self.fit, *self._ended())
        # The absorbing state's feature is 0 at a start.
        direction = direction[:-1] if self.features.absorbing and not restart else direction
        values = np.asarray(self.features.starts(states).predict(direction[:, None]))[:, 0]
        return weights * (values - initial[: len(direction)] @ direction) / self.moments.initial_weight

    def _ended(self) -> tuple[float, float]:
        """E[1{ended} xᵀw] and the same with q, which matter where ended episodes restart."""
        if self.fit.discount < 1 or self.moments.absorbing_weight is None:
            return 0.0, 0.0
        scale = self.moments.weight / (self.moments.weight - self.moments.absorbing_weight)
        ended = scale * self.moments.next_gram[-1, :-1]
        return float(ended @ self.fit.solution.ratio_params), float(ended @ self.fit.adjoint.ratio)

    @cached_property
    def _mean(self) -> float:
        """The mean of IF, before it is centred, over the log's rows: of moments alone, since it is quadratic in x."""
        fit, adjoint, used = self.fit, self.fit.adjoint, self.fit.moments
        w, q, p, kappa = fit.solution.ratio_params, adjoint.ratio, adjoint.critic, adjoint.flow
        a = used.bellman(fit.discount)
        total = float(used.reward @ w + kappa @ a @ q - p @ a @ w - p @ used.gram @ kappa)
        total -= adjoint.norm_force * float(used.mean @ q) + adjoint.norm * float(used.mean @ w)
        if fit.discount == 1 or used.absorbing_weight is None:
            return total
        # The absorbing state's own row is in the moments and not in the log.
        step = 1 - fit.discount
        loop = q[-1] * step * kappa[-1] - step * p[-1] * w[-1] - p[-1] * kappa[-1]
        loop -= adjoint.norm_force * q[-1] + adjoint.norm * w[-1]
        return float(total * used.weight - loop * used.absorbing_weight) / (used.weight - used.absorbing_weight)


def _quotient(amounts: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Amounts by weights; 0 where the weight is."""
    return np.divide(amounts, weights, out=np.zeros(len(weights)), where=weights > 0)
