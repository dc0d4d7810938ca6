"""Shares of the error, one by one or as sums of their powers, of one answer and of several.

Student's and Hall's intervals, and the checks beside them, read no more of the shares than their number and the sums
of their first six powers around their mean. These add up over parts of a log, so that 10⁸ episodes need no more memory
than one. A difference of two answers has the share s_ui − s_uj of each unit u, whose powers are summed in the same
pass: from the powers of s_ui and s_uj alone they would be differences of large numbers where two policies are alike.
An answer by itself is its difference to nothing, the column 0 whose shares are 0. The covariance of two differences
follows from variances,

    Cov(s_p − s_m, s_q − s_n) = ½ (V_pn + V_mq − V_pq − V_mn),     V_ij = Var(s_i − s_j).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import InputError

# The skewness is a third power, and its variance the square of one.
POWERS = 6


@dataclass(frozen=True, eq=False)
class ShareSums:
    """Some shares by the sums of their powers; two of them add up.

    Attributes:
        powers: Σ (s/unit)ᵏ for k = 0 to 6, the first of which is their number.
        unit: what the shares are counted in, a power of two near their size: powers of tiny numbers underflow.
        low: the smallest s/unit.
        high: the largest.
    """

    powers: Float[np.ndarray, " powers"]
    unit: float = 1.0
    low: float = math.inf
    high: float = -math.inf

    @classmethod
    def of(
        cls, scaled: Float[np.ndarray, " m"], unit: float, copies: Float[np.ndarray, " m"] | None = None
    ) -> ShareSums:
        """The sums of some shares, which are given in this unit, each as often as `copies` says."""
        if not len(scaled):
            return cls(np.zeros(POWERS + 1), unit)
        return cls(_power_sums(scaled, copies), unit, float(scaled.min()), float(scaled.max()))

    def __len__(self) -> int:
        return round(float(self.powers[0]))

    def __add__(self, other: ShareSums) -> ShareSums:
        assert self.unit == other.unit
        low, high = min(self.low, other.low), max(self.high, other.high)
        return ShareSums(self.powers + other.powers, self.unit, low, high)

    def centred(self) -> Float[np.ndarray, " powers"]:
        """Σ (s/unit − mean)ᵏ for k = 0 to 6."""
        count = self.powers[0]
        mean = self.powers[1] / count
        sums = [
            sum(math.comb(k, j) * self.powers[j] * (-mean) ** (k - j) for j in range(k + 1)) for k in range(POWERS + 1)
        ]
        return np.array([count, 0.0, *sums[2:]])

    def negated(self) -> ShareSums:
        """Those of the same shares with the other sign."""
        return ShareSums(self.powers * (-1.0) ** np.arange(POWERS + 1), self.unit, -self.high, -self.low)

    def scaled(self, exponent: int) -> ShareSums:
        """The same shares times two to this power."""
        return replace(self, unit=math.ldexp(self.unit, exponent))


Shares = Float[np.ndarray, " _"] | ShareSums
Samples = Sequence[Shares]
# Those of a log in memory, one by one.
EachShare = list[Float[np.ndarray, " _"]]


def central_sums(shares: Shares, highest: int = POWERS) -> Float[np.ndarray, " powers"]:
    """Σ (s − mean)ᵏ for k = 0 to `highest`, in the shares' own scale: high powers need shares of moderate size."""
    if isinstance(shares, ShareSums):
        return shares.centred()[: highest + 1] * shares.unit ** np.arange(highest + 1)
    return _power_sums(shares - shares.mean(), highest=highest)


def largest_share(shares: Shares) -> float:
    """About the size of the largest share: none is larger than twice this."""
    if isinstance(shares, ShareSums):
        return max(abs(shares.low), abs(shares.high)) * shares.unit
    return float(np.abs(shares - shares.mean()).max())


def times_power_of_two(shares: Shares, exponent: int) -> Shares:
    """The shares times two to this power: nothing is rounded."""
    return shares.scaled(exponent) if isinstance(shares, ShareSums) else np.ldexp(shares, exponent)


def _power_sums(values: np.ndarray, copies: np.ndarray | None = None, highest: int = POWERS) -> np.ndarray:
    sums, power = np.empty(highest + 1), np.ones(len(values)) if copies is None else np.array(copies, dtype=np.float64)
    for k in range(highest + 1):
        sums[k] = power.sum()
        if k < highest:
            power *= values
    return sums


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
