"""What the correction for pairs with few rows reads, of a table whose rewards are too many to be counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gradientdice.log.scanning.parts import Batch
from gradientdice.log.scanning.passes import Sums
from gradientdice.statistics.scan.scorers import TableScorer
from gradientdice.statistics.small_samples import PairSums


@dataclass(eq=False)
class PairPass:
    """Sums over rows, by pair.

    Attributes:
        scorers: the table's, of each answer.
    """

    scorers: tuple[TableScorer, ...]

    @property
    def is_heavy(self) -> bool:
        """Whether to sum a batch takes longer than to read it."""
        return False

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
            found: Sums = {}
            for number, scorer in enumerate(self.scorers):
                sums = PairSums.of(scorer.rows_of_pairs(batch.data), pairs=scorer.num_pairs)
                found |= {f"{number}.of_pairs": sums.of_pairs, f"{number}.totals": sums.totals}
            total = self.merged(total, found)
        return total

    def merged(self, left: Sums, right: Sums) -> Sums:
        """The sums of two stretches."""
        return {name: left[name] + right[name] for name in left} if left and right else left or right


def pair_sums(sums: Sums, count: int) -> list[PairSums]:
    """Those of each answer."""
    return [PairSums(sums[f"{number}.of_pairs"], sums[f"{number}.totals"]) for number in range(count)]
