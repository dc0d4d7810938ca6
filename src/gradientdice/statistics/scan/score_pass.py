"""The second pass over a scanned log: shares of the error by episode, and how the target's mass is spread.

Several answers are scored in one pass, and the shares of their differences are summed beside their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Num

from gradientdice.log.scanning.episodes import EpisodePass, sums_by_run
from gradientdice.log.scanning.parts import Batch
from gradientdice.log.scanning.passes import Sums
from gradientdice.problem.scan.facts import COLUMNS as SEEN_COLUMNS
from gradientdice.statistics.mass import MassSums
from gradientdice.statistics.scan.scorers import RowScores, Scorer
from gradientdice.statistics.scan.seen import SeenBehavior
from gradientdice.statistics.shares import JointShares, JointSums, Pair

# The columns of a run after its shares: rows that count, weight of its first row.
OTHERS = 2
# Coordinates of a state whose means are compared.
MOST_COORDINATES = 20
KINDS = ("share", "initial", "start")


@dataclass(eq=False)
class ScorePass(EpisodePass):
    """Sums of shares.

    A run is a row of numbers: the share of each answer, the rows that count, the weight of its first row, what is known
    of the behaviour at each discount, and its first state.

    Attributes:
        scorers: what gives a row its share, for each answer.
        behaviors: what the behaviour earns, at some discounts: the columns after those of the scorers.
        pairs: of columns whose differences are summed.
        unit: a power of two near the size of a share.
        size: the number of rows of the log.
        starts: whether the first state of each episode is an initial state.
        as_states: from rows of floats to states.
    """

    scorers: tuple[Scorer, ...] = field(kw_only=True)
    behaviors: tuple[SeenBehavior, ...] = field(kw_only=True, default=())
    pairs: tuple[Pair, ...] = field(kw_only=True)
    unit: float = field(kw_only=True)
    size: int = field(kw_only=True)
    starts: bool = field(kw_only=True)
    as_states: Callable[[np.ndarray], np.ndarray] = field(kw_only=True)

    @property
    def kind(self) -> str:
        """In a word."""
        return "scores"

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that it reads beside those that every log has."""
        return ("terminated", "weights", "episodes", "initial_states")

    @property
    def reducers(self) -> dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]:
        """Ranges and the heaviest rows do not add up."""
        ends = (("low", np.minimum), ("high", np.maximum))
        masses = {f"mass.{number}": self._both for number in range(len(self.scorers))}
        return {**{f"{kind}_{end}": reduce for kind in KINDS for end, reduce in ends}, **masses}

    def _both(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return (MassSums.unpacked(left, self.size) + MassSums.unpacked(right, self.size)).packed()

    def counter(self) -> _Counter:
        """What sums over the rows of one part."""
        return _Counter(self)

    def scores(self, batch: Batch) -> list[RowScores]:
        """What each scorer says of a batch, asked once."""
        if "scores" not in batch.made:
            # A single one has nothing to share, and need not keep it.
            made: dict[str, Any] | None = {} if len(self.scorers) > 1 else None
            batch.made["scores"] = [scorer.rows(batch.data, made) for scorer in self.scorers]
        return batch.made["scores"]

    def run_values(self, batch: Batch, first: Int[np.ndarray, " m"]) -> Float[np.ndarray, "m k"]:
        """The shares of each run in units, the rows that count, what the behaviour earned, and its start."""
        data, weights = batch.data, batch.data.row_weights
        shares = [own.shares / self.unit for own in self.scores(batch)]
        sums = sums_by_run(np.column_stack([*shares, weights > 0]), first)
        seen = [own.run_values(batch, first) for own in self.behaviors]
        return np.column_stack([sums, weights[first], *seen, data.states[first].reshape(len(first), -1)])

    def joined(self, group: Int[np.ndarray, " m"], runs: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "g k"]:
        """Shares add up; the first piece has the start."""
        first = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
        whole, added = runs[first], len(self.scorers) + 1
        whole[:, :added] = np.add.reduceat(runs[:, :added], first, axis=0)
        for own, place in zip(self.behaviors, self._places, strict=True):
            whole[:, place] = own.joined(group, runs[:, place])
        return whole

    def closed(self, runs: Float[np.ndarray, "m k"]) -> Sums:
        """Sums of powers of the shares of whole episodes, and of their differences."""
        count = len(self.scorers)
        columns, counted, weights = np.array(runs[:, :count]), runs[:, count] > 0, runs[:, count + 1]
        found: Sums = {}
        if self.starts:
            start = count + OTHERS + SEEN_COLUMNS * len(self.behaviors)
            starts = self._starts(self.as_states(runs[:, start:]), weights)
            for number, shares in enumerate(starts):
                columns[:, number] += 0.0 if shares is None else shares / self.unit
            # The other way round where an answer does not depend on the starts.
            ends = [(np.inf, -np.inf) if own is None else (own.min(), own.max()) for own in starts]
            found = {
                "start_low": np.array([low for low, _ in ends]),
                "start_high": np.array([high for _, high in ends]),
            }
        seen = [own.shares(runs[:, place]) / self.unit for own, place in zip(self.behaviors, self._places, strict=True)]
        return {**self._sums("share", np.column_stack([columns, *seen])[counted]), **found}

    def single_rows(self, batch: Batch) -> Sums:
        """Each row is a unit of its own."""
        data, weights = batch.data, batch.data.row_weights
        columns = [own.shares for own in self.scores(batch)]
        columns += [own.row_shares(data.rewards, weights) for own in self.behaviors]
        shares = np.column_stack(columns) / self.unit
        return self._sums("share", shares if data.weights is None else shares[data.weights > 0])

    def start_sums(self, states: Num[np.ndarray, "m ..."]) -> Sums:
        """What initial states that are given apart from the rows add; nothing if no answer depends on them."""
        found = self._starts(states, np.ones(len(states)))
        if all(shares is None for shares in found):
            return {}
        columns = [np.zeros(len(states)) if shares is None else shares / self.unit for shares in found]
        return self._sums("initial", np.column_stack([*columns, np.zeros((len(states), len(self.behaviors)))]))

    @property
    def _places(self) -> list[slice]:
        """Where a run has what is known of the behaviour, at each discount."""
        first = len(self.scorers) + OTHERS
        starts = [first + SEEN_COLUMNS * number for number in range(len(self.behaviors))]
        return [slice(start, start + SEEN_COLUMNS) for start in starts]

    def _starts(self, states: np.ndarray, weights: np.ndarray) -> list[np.ndarray | None]:
        return [scorer.starts(states, weights) for scorer in self.scorers]

    def _sums(self, kind: str, columns: Float[np.ndarray, "m P"]) -> Sums:
        sums = JointSums.of(columns, self.pairs)
        return {f"{kind}_powers": sums.powers, f"{kind}_low": sums.low, f"{kind}_high": sums.high}


class _Counter:
    def __init__(self, work: ScorePass) -> None:
        self._work = work
        self._total: Sums = {}

    def add(self, batch: Batch) -> None:
        """Adds the rows of a batch."""
        work, data, weights = self._work, batch.data, batch.data.row_weights
        found: Sums = {}
        for number, scores in enumerate(work.scores(batch)):
            mass = weights * scores.ratio
            found[f"mass.{number}"] = MassSums.of(mass, scores.ratio, work.size).packed()
            if data.states.ndim == 2:
                states = data.states[:, :MOST_COORDINATES]
                found[f"moved.{number}"] = np.vstack(
                    [np.append(weights.sum(), weights @ states), np.append(mass.sum(), mass @ states)]
                )
        if batch.starts is not None:
            found |= work.start_sums(batch.starts)
        self._total = work.together(self._total, found)

    def sums(self) -> Sums:
        """What they come to."""
        return self._total


def joint_shares(sums: Sums, pairs: tuple[Pair, ...], unit: float) -> JointShares:
    """The shares that a pass summed."""
    kinds = [kind for kind in ("share", "initial") if f"{kind}_powers" in sums]
    return JointShares(tuple(_joint_sums(sums, kind, pairs, unit) for kind in kinds))


def _joint_sums(sums: Sums, kind: str, pairs: tuple[Pair, ...], unit: float) -> JointSums:
    return JointSums(pairs, sums[f"{kind}_powers"], sums[f"{kind}_low"], sums[f"{kind}_high"], unit)


def mass_sums(sums: Sums, number: int, size: int) -> MassSums:
    """How the mass of one answer is spread over all rows."""
    return MassSums.unpacked(sums[f"mass.{number}"], size)
