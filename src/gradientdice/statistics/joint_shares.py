"""Shares of several answers in the error of one log, by sums over its units: of each answer, and of each difference.

A difference of two answers has the share s_ui − s_uj of each unit u. Its interval needs the sums of six powers of these
(`share_sums.py`), which are added up in the same pass as those of the answers themselves: from the powers of s_ui and
s_uj alone they would be differences of large numbers where two policies are alike. An answer by itself is its
difference to nothing, the column 0 whose shares are 0. The covariance of two differences follows from variances,

    Cov(s_p − s_m, s_q − s_n) = ½ (V_pn + V_mq − V_pq − V_mn),     V_ij = Var(s_i − s_j).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import InputError
from gradientdice.statistics.share_sums import POWERS, ShareSums, central_sums

# The column whose shares are 0.
NOTHING = 0
Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class JointSums:
    """One kind of unit: the sums of the shares of each pair of columns.

    Attributes:
        pairs: (i, j) for the shares s_i − s_j; columns are numbered from 1, and 0 is nothing.
        powers: Σ ((s_i − s_j)/unit)ᵏ for k = 0 to 6, of each pair.
        low: the smallest (s_i − s_j)/unit.
        high: the largest.
        unit: see `ShareSums`.
    """

    pairs: tuple[Pair, ...]
    powers: Float[np.ndarray, "pairs powers"]
    low: Float[np.ndarray, " pairs"]
    high: Float[np.ndarray, " pairs"]
    unit: float

    @classmethod
    def of(
        cls,
        columns: Float[np.ndarray, "m P"],
        pairs: tuple[Pair, ...],
        unit: float = 1.0,
        copies: Float[np.ndarray, " m"] | None = None,
    ) -> JointSums:
        """The sums over some units, whose shares are given in this unit, each as often as `copies` says."""
        found = [ShareSums.of(_between(columns, *pair), unit, copies) for pair in pairs]
        low, high = (np.array([getattr(sums, end) for sums in found]) for end in ("low", "high"))
        return cls(pairs, np.array([sums.powers for sums in found]), low, high, unit)

    def between(self, one: int, other: int) -> ShareSums:
        """The sums of s_one − s_other."""
        if one == other:
            return ShareSums(np.append(self.powers[0, 0], np.zeros(POWERS)), self.unit, 0.0, 0.0)
        for number, pair in enumerate(self.pairs):
            if pair in ((one, other), (other, one)):
                found = ShareSums(self.powers[number], self.unit, float(self.low[number]), float(self.high[number]))
                return found if pair == (one, other) else found.negated()
        raise InputError("These two answers were not scored together, so that their errors cannot be paired.")

    def variance(self, one: int, other: int) -> float:
        """Of the sum over units of s_one − s_other, with its n/(n−1)."""
        sums = self.between(one, other)
        count = len(sums)
        return count / (count - 1) * float(central_sums(sums, 2)[2]) if count > 1 else 0.0


@dataclass(frozen=True, eq=False)
class JointShares:
    """All kinds of units.

    Attributes:
        kinds: rows or episodes first, then initial states where these are given apart from the rows.
    """

    kinds: tuple[JointSums, ...]

    def samples(self, one: int, other: int = NOTHING) -> list[ShareSums]:
        """The shares of a difference; initial states that do not move it are left out."""
        found = [kind.between(one, other) for kind in self.kinds]
        return [found[0], *(sums for sums in found[1:] if sums.high > sums.low)]

    def covariance(self, differences: Sequence[Pair]) -> Float[np.ndarray, "k k"]:
        """Of the sampling errors of several differences, or of answers as differences to nothing."""
        known: dict[Pair, float] = {}

        def variance(one: int, other: int) -> float:
            pair = (min(one, other), max(one, other))
            if pair not in known:
                known[pair] = sum(kind.variance(*pair) for kind in self.kinds)
            return known[pair]

        return np.array(
            [
                [(variance(p, n) + variance(m, q) - variance(p, q) - variance(m, n)) / 2 for q, n in differences]
                for p, m in differences
            ]
        )


def _between(columns: Float[np.ndarray, "m P"], one: int, other: int) -> Float[np.ndarray, " m"]:
    own = np.ascontiguousarray(columns[:, one - 1])
    return own if other == NOTHING else own - columns[:, other - 1]
