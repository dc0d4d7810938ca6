"""Independent units: how many observations there are behind the error, and whether starts that are alike say enough."""

from __future__ import annotations

from gradientdice.statistics.checks import Check, above
from gradientdice.statistics.influence import Influence
from gradientdice.statistics.intervals import degrees_of_freedom, varied_starts
from gradientdice.statistics.share_sums import Samples

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
