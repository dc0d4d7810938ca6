"""Shares of the error, one by one or as sums of their powers.

Student's and Hall's intervals, and the checks beside them, read no more of the shares than their number and the sums of
their first six powers around their mean. These add up over parts of a log, so that 10⁸ episodes need no more memory
than one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

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
