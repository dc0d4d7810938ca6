"""What the logged rewards allow: a value is a mean of rewards, so that it lies between the smallest and the largest.

Below discount 1 the 0 that follows an episode's end counts too; at discount 1 ended episodes restart, and nothing
follows an end. Rows of weight 0 are not part of the log.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradientdice.log.transitions import Transitions
from gradientdice.statistics.checks import Check, below

# Values this near to the range, relative to its larger end, are outside it by rounding alone.
ROUNDING = 1e-9


@dataclass(frozen=True)
class PossibleRange:
    """Between which numbers a mean of the logged rewards lies."""

    low: float
    high: float

    @classmethod
    def of(cls, data: Transitions, discount: float) -> PossibleRange:
        """The range of a log's rewards."""
        counted = data.row_weights > 0
        rewards = data.rewards[counted]
        if discount < 1 and data.ended[counted].any():
            rewards = np.append(rewards, 0.0)
        return cls(float(rewards.min()), float(rewards.max()))

    @property
    def differences(self) -> PossibleRange:
        """Between which numbers the difference of two such means lies."""
        extent = self.high - self.low
        return PossibleRange(-extent, extent)

    def contains(self, value: float) -> bool:
        """Whether some weighting of the rewards has this mean, up to rounding."""
        slack = ROUNDING * max(abs(self.low), abs(self.high))
        return self.low - slack <= value <= self.high + slack

    def cut(self, value: float) -> float:
        """The nearest number in the range; a number that rounding alone put outside stays as it is."""
        return value if self.contains(value) else min(max(value, self.low), self.high)

    def cut_interval(self, interval: tuple[float, float]) -> tuple[float, float]:
        """The part of an interval that lies in the range; its nearest end where none does."""
        low, high = interval
        return self.cut(low), self.cut(high)

    def check(self, value: float) -> Check | None:
        """An alarm where the value lies outside."""
        if self.contains(value):
            return None
        distance = max(self.low - value, value - self.high)
        return below(
            "distance of the value from the possible range",
            distance,
            0.0,
            0.0,
            f"the value came out as {value:.6g}, and means of the logged rewards lie between {self.low:.6g} and "
            f"{self.high:.6g}",
            "more data, better features, or compare",
        )
