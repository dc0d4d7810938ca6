"""Checks of an interval's basis: independent units, initial states that are alike, and width.

The variance of few units is hardly known, and starts that are alike may be so by chance. An interval that covers may
still be of no use: its half-width is set beside the range of the rewards, in which every value lies, and beside the
decision, which is the difference between the policy and the behaviour, or a quarter of the rewards' standard deviation
where the two differ by less.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradientdice.statistics.behavior import BehaviorValue
from gradientdice.statistics.checks import Check, above, below
from gradientdice.statistics.influence import Influence
from gradientdice.statistics.intervals import degrees_of_freedom, varied_starts
from gradientdice.statistics.possible import PossibleRange
from gradientdice.statistics.shares import Samples

# So many initial states that are all alike are taken for a start that is always the same: other starts are then
# rarer than 10%, with 95% confidence.
KNOWN_STARTS = 30
# Of ten exponential, lognormal or Pareto(2.5) units whose skewness looks small (10% to 20% of all samples), Student's
# interval holds the mean in 83%, 66% and 44%; with twenty, few of them still look so. Of five, even normal ones do not
# show what they are.
ENOUGH, FEW = 20, 5


def units_check(samples: Samples) -> Check:
    """How many independent units the interval rests on: Welch's degrees of freedom, and one."""
    return above(
        "independent units",
        degrees_of_freedom(samples) + 1,
        ENOUGH,
        FEW,
        "episodes, rows or initial states behind the error",
        "log more episodes, or give more initial states",
    )


def alike_starts(influence: Influence) -> int | None:
    """How many initial states there are, if they are few and alike, as they may be by chance; else None."""
    if influence.initial is None or varied_starts(influence):
        return None
    count = len(influence.initial)
    return count if 1 < count < KNOWN_STARTS else None


def unseen_starts(count: int, confidence: float) -> float:
    """The largest probability of other starts under which so many draws are alike with probability 1 − confidence."""
    return 1 - (1 - confidence) ** (1 / count)


def starts_check(count: int) -> Check:
    """Whether so many initial states that are alike say how episodes begin."""
    return above(
        "initial states, all alike",
        count,
        KNOWN_STARTS,
        10,
        "so few may be alike by chance, while other episodes begin elsewhere",
        "give more initial states; or one, if every episode begins there",
    )


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
