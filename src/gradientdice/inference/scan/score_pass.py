"""The second pass over a scanned log: shares of the error by episode, and how the target's mass is spread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from gradientdice.data.scan.episodes import EpisodePass, sums_by_run
from gradientdice.data.scan.parts import Batch
from gradientdice.data.scan.passes import Sums
from gradientdice.inference.mass import MassSums
from gradientdice.inference.scan.scorers import RowScores, Scorer, TableScorer
from gradientdice.inference.share_sums import ShareSums
from gradientdice.inference.small_samples import PairSums

# The columns of a run before its first state: share, rows that count, weight of its first row.
COLUMNS = 3
# Coordinates of a state whose means are compared.
MOST_COORDINATES = 20
KINDS = ("share", "initial", "start")


@dataclass(eq=False)
class ScorePass(EpisodePass):
    """Sums of shares.

    Attributes:
        scorer: what gives a row its share.
        unit: a power of two near the size of a share.
        size: the number of rows of the log.
        starts: whether the first state of each episode is an initial state.
        as_states: from rows of floats to states.
    """

    scorer: Scorer = field(kw_only=True)
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
        return {**{f"{kind}_{end}": reduce for kind in KINDS for end, reduce in ends}, "mass": self._both}

    def _both(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return (MassSums.unpacked(left, self.size) + MassSums.unpacked(right, self.size)).packed()

    def counter(self) -> _Counter:
        """What sums over the rows of one part."""
        return _Counter(self)

    def scores(self, batch: Batch) -> RowScores:
        """What the scorer says of a batch, asked once."""
        if "scores" not in batch.made:
            batch.made["scores"] = self.scorer.rows(batch.data)
        return batch.made["scores"]

    def run_values(self, batch: Batch, first: Int[np.ndarray, " m"]) -> Float[np.ndarray, "m k"]:
        """The shares of each run in units, the rows that count, and its start."""
        data, weights = batch.data, batch.data.row_weights
        sums = sums_by_run(np.column_stack([self.scores(batch).shares / self.unit, weights > 0]), first)
        return np.column_stack([sums, weights[first], data.states[first].astype(np.float64).reshape(len(first), -1)])

    def joined(self, group: Int[np.ndarray, " m"], runs: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "g k"]:
        """Shares add up; the first piece has the start."""
        first = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
        whole = runs[first]
        whole[:, :2] = np.add.reduceat(runs[:, :2], first, axis=0)
        return whole

    def closed(self, runs: Float[np.ndarray, "m k"]) -> Sums:
        """Sums of powers of the shares of whole episodes."""
        shares, found = np.array(runs[:, 0]), {}
        starts = self.scorer.starts(self.as_states(runs[:, COLUMNS:]), runs[:, 2]) if self.starts else None
        if starts is not None:
            shares += starts / self.unit
            found = {"start_low": np.array([starts.min()]), "start_high": np.array([starts.max()])}
        return {**_shares("share", shares[runs[:, 1] > 0]), **found}

    def single_rows(self, batch: Batch) -> Sums:
        """Each row is a unit of its own."""
        shares = self.scores(batch).shares / self.unit
        return _shares("share", shares if batch.data.weights is None else shares[batch.data.weights > 0])


class _Counter:
    def __init__(self, work: ScorePass) -> None:
        self._work = work
        self._total: Sums = {}

    def add(self, batch: Batch) -> None:
        """Adds the rows of a batch."""
        work, data = self._work, batch.data
        scores, weights = work.scores(batch), data.row_weights
        mass = weights * scores.ratio
        found = {"mass": MassSums.of(mass, scores.ratio, work.size).packed()}
        if data.states.ndim == 2:
            states = data.states[:, :MOST_COORDINATES]
            found["moved"] = np.vstack(
                [np.append(weights.sum(), weights @ states), np.append(mass.sum(), mass @ states)]
            )
        shares = None if batch.starts is None else work.scorer.starts(batch.starts, np.ones(len(batch.starts)))
        if shares is not None:
            found |= _shares("initial", shares / work.unit)
        self._total = work.together(self._total, found)

    def sums(self) -> Sums:
        """What they come to."""
        return self._total


@dataclass(eq=False)
class PairPass:
    """What the correction for pairs with few rows reads, of a table whose rewards are too many to be counted.

    Attributes:
        scorer: the table's.
    """

    scorer: TableScorer

    @property
    def name(self) -> str:
        """In a word."""
        return "pairs"

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that it reads beside those that every log has."""
        return ("terminated", "weights")

    def over(self, part: int, batches: Iterator[Batch]) -> Sums:
        """The sums of one part."""
        total: Sums = {}
        for batch in batches:
            sums = PairSums.of(self.scorer.rows_of_pairs(batch.data), pairs=self.scorer.num_pairs)
            found = {"of_pairs": sums.of_pairs, "totals": sums.totals}
            total = self.merged(total, found) if total else found
        return total

    def merged(self, left: Sums, right: Sums) -> Sums:
        """The sums of two stretches."""
        return {name: left[name] + right[name] for name in left} if left and right else left or right


def share_sums(sums: Sums, kind: str, unit: float) -> ShareSums | None:
    """The shares of one kind; None if there are none."""
    if f"{kind}_powers" not in sums:
        return None
    ends = (float(sums.get(f"{kind}_{end}", np.zeros(1))[0]) for end in ("low", "high"))
    return ShareSums(sums[f"{kind}_powers"], unit, *ends)


def mass_sums(sums: Sums, size: int) -> MassSums:
    """How the mass is spread over all rows."""
    return MassSums.unpacked(sums["mass"], size)


def counted_shares(scorer: TableScorer, sums: Sums, unit: float) -> tuple[ShareSums, MassSums]:
    """The same as a pass gives, for independent rows without weights whose rewards were all counted."""
    cell, rewards, rows = counted_rows(sums)
    scores = scorer.of_cells(cell, rewards, np.ones(len(cell)))
    mass = MassSums.of(scores.ratio, scores.ratio, int(rows.sum()), rows)
    return ShareSums.of(scores.shares / unit, unit, rows), mass


def counted_pairs(scorer: TableScorer, sums: Sums) -> PairSums:
    """The same as `PairPass` gives, from counts."""
    cell, rewards, rows = counted_rows(sums)
    return PairSums.of(scorer.pair_rows(cell, rewards, np.ones(len(cell))), rows)


def counted_rows(sums: Sums) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The different rows of a counted log: cell, reward, and how many there are."""
    cell, slot = np.nonzero(sums["slot_rows"] > 0)
    return cell, sums["slot_reward"][cell, slot], sums["slot_rows"][cell, slot]


def _shares(kind: str, shares: np.ndarray) -> Sums:
    sums = ShareSums.of(shares, 1.0)
    return {
        f"{kind}_powers": sums.powers,
        f"{kind}_low": np.array([sums.low]),
        f"{kind}_high": np.array([sums.high]),
    }
