"""How much better than the behaviour the policy is: a difference whose two parts come from the same log.

    target's value − behaviour's value,   error = Σ over units of (share in the first − share in the second).

Both are moved by the same episodes, mostly in the same direction: an episode that began well is good for both. So the
difference is known better than two intervals beside each other say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from gradientdice.log.transitions import Transitions
from gradientdice.statistics.behavior import behavior_shares
from gradientdice.statistics.intervals import SkewInterval, standard_error

Decision = Literal["better", "worse", "undecided"]


@dataclass(frozen=True)
class Improvement:
    """The policy's value less the behaviour's.

    Attributes:
        value: the difference.
        interval: (low, high) at the confidence asked for.
        standard_error: of its sampling noise.
        behavior: the behaviour's value.
    """

    value: float
    interval: tuple[float, float]
    standard_error: float
    behavior: float

    @property
    def decision(self) -> Decision:
        """Whether the interval says that the policy is better than the behaviour, worse, or neither."""
        low, high = self.interval
        return "better" if low > 0 else "worse" if high < 0 else "undecided"


def improvement(
    data: Transitions,
    discount: float,
    value: float,
    samples: Sequence[Float[np.ndarray, " _"]],
    confidence: float,
    room: tuple[float, float] = (0.0, 0.0),
) -> Improvement | None:
    """The difference to the behaviour, with its interval.

    Args:
        data: the log.
        discount: γ.
        value: the policy's.
        samples: the shares of its error by independent unit, those of the log's units first, as
            `independent_shares` gives them.
        confidence: of the interval.
        room: what is added below and above the sampling interval: what widens the value's own interval beyond its
            sampling noise.

    Returns:
        The difference; None if the behaviour's value is not known, or there is only one unit.
    """
    behavior = behavior_shares(data, discount)
    if behavior is None or len(samples[0]) < 2:
        return None
    own, shares = behavior
    paired = [samples[0] - shares, *samples[1:]]
    low, high = SkewInterval().interval(value - own, paired, confidence, 0)
    below, above = room
    return Improvement(value - own, (low - below, high + above), standard_error(paired), own)
