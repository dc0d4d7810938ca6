"""What the passes over a table's log give, from its counts alone: rows without episodes or weights, few rewards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from gradientdice.log.scanning.passes import Sums
from gradientdice.statistics.mass import MassSums
from gradientdice.statistics.scan.scorers import TableScorer
from gradientdice.statistics.scan.seen import SeenBehavior
from gradientdice.statistics.shares import JointShares, JointSums, Pair
from gradientdice.statistics.small_samples import PairSums

Rows = tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"], Float[np.ndarray, " k"]]


def counted_rows(sums: Sums) -> Rows:
    """The different rows of a counted log: cell, reward, and how many there are."""
    cell, slot = np.nonzero(sums["slot_rows"] > 0)
    return cell, sums["slot_reward"][cell, slot], sums["slot_rows"][cell, slot]


def counted_pairs(scorer: TableScorer, sums: Sums) -> PairSums:
    """The same as `PairPass` gives for one answer."""
    cell, rewards, rows = counted_rows(sums)
    return PairSums.of(scorer.pair_rows(scorer.own_cells(cell), rewards, np.ones(len(cell))), rows)


def counted_shares(
    scorers: Sequence[TableScorer],
    behaviors: Sequence[SeenBehavior],
    sums: Sums,
    pairs: tuple[Pair, ...],
    unit: float,
) -> tuple[JointShares, list[MassSums]]:
    """The same as `ScorePass` gives: the shares of all answers, and how the mass of each is spread.

    Args:
        scorers: of the answers.
        behaviors: what the behaviour earns: the columns after them.
        sums: the counts.
        pairs: of columns whose differences are summed.
        unit: a power of two near the size of a share.
    """
    cell, rewards, rows = counted_rows(sums)
    once = np.ones(len(cell))
    scores = [scorer.of_cells(scorer.own_cells(cell), rewards, once) for scorer in scorers]
    columns = [score.shares for score in scores] + [own.row_shares(rewards, once) for own in behaviors]
    kinds = [JointSums.of(np.column_stack(columns) / unit, pairs, unit, rows)]
    if "start_state" in sums:
        states = sums["start_state"]
        found = [scorer.starts(states, np.ones(len(states))) for scorer in scorers]
        if any(shares is not None for shares in found):
            starts = [np.zeros(len(states)) if shares is None else shares for shares in found]
            starts += [np.zeros(len(states)) for _ in behaviors]
            kinds.append(JointSums.of(np.column_stack(starts) / unit, pairs, unit, sums["start_rows"]))
    return JointShares(tuple(kinds)), [MassSums.of(own.ratio, own.ratio, int(rows.sum()), rows) for own in scores]
