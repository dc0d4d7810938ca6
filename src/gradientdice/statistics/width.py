"""Is the interval narrow enough to decide on?

An interval that covers may still be of no use. Its half-width is set beside the range of the rewards, in which every
value lies, and beside what is to be decided: the difference between the policy and the behaviour, or a quarter of the
rewards' standard deviation where the two differ by less.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradientdice.statistics.behavior import BehaviorValue
from gradientdice.statistics.checks import Check, below
from gradientdice.statistics.possible import PossibleRange

# Policies that differ by less than this share of the rewards' standard deviation are alike for most purposes.
ALIKE = 0.25


def width_checks(
    deviation: float, value: float, half_width: float, possible: PossibleRange, behavior: BehaviorValue | None
) -> Iterator[Check]:
    """The interval beside the rewards and beside the difference to the behaviour.

    Args:
        deviation: the standard deviation of the rewards.
        value: the estimate.
        half_width: half of the interval's length, before it was cut to the possible range.
        possible: the range of the rewards.
        behavior: the behaviour's value at the same discount, where it is known. The cheap one, from what was seen
            alone: a check must not wait for a search, and only the size of the difference matters here.
    """
    extent = possible.high - possible.low
    if extent <= 0:
        return
    yield below(
        "half-width ÷ range of the rewards",
        half_width / extent,
        0.15,
        0.5,
        "how much of what is possible the interval leaves open to each side",
        "log more data near the target policy",
    )
    difference = 0.0 if behavior is None else abs(value - behavior.value)
    yield below(
        "half-width ÷ what is to be decided",
        half_width / max(difference, ALIKE * deviation),
        2.0,
        8.0,
        "the interval beside the policy's difference to the behaviour (where they are alike: beside a quarter of the "
        "rewards' standard deviation)",
        "log more data near the target policy",
    )
