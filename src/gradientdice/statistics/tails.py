"""Is the error of an estimate shared by many observations, or do a few decide it?

An estimate's error is a sum of independent shares s_i. Its skewness is

    g = Σ s³ / (Σ s²)^{3/2},

the skewness of one share over √n: 0 for symmetric shares, 1/√k where k equal shares are all that matter, 1 where one
is. Student's interval misses by about g times its standard error, on the side of the tail. From shares with a heavy
tail g is found too small as long as the tail was not seen; its own error, found from the same shares, then is large.
What is judged is therefore |g| and twice its error.

What no observation shows cannot be found in this way: a reward that is yet to come leaves no trace in the log.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from gradientdice.statistics.checks import Check, below
from gradientdice.statistics.intervals import standard_error
from gradientdice.statistics.share_sums import Samples, central_sums, largest_share, times_power_of_two

# On the problems of the study of traps that thresholds are set on, 88 of 100 logs with exponential rewards stay below
# it, and 2 of 100 with Pareto(2.5) rewards. At 0.2 about 18% of the latter would, of which some 80% are covered. About
# 55 equal shares reach it.
SKEWED = 0.15
# About six equal shares, with nothing beside them.
FEW = 0.6


def skewness(samples: Samples) -> float:
    """The skewness of the estimate's error; 0 where there is none."""
    sums = _scaled_sums(samples)
    squares, cubes = _power(sums, 2), _power(sums, 3)
    return cubes / squares**1.5 if squares > 0 else 0.0


def largest_skewness(samples: Samples) -> float:
    """|g| and twice its standard error beyond that of normal shares: how large the skewness may be.

    With n shares c of mean 0, each moves Σc³ by c³ − Σc³/n − 3c Σc²/n (the last by moving the mean), and Σc² by
    c² − Σc²/n. The variance of g for normal shares, 6/n² with one kind of them, is taken off: that there are few units
    is for another check to say.
    """
    sums = _scaled_sums(samples)
    squares, cubes = _power(sums, 2), _power(sums, 3)
    if squares <= 0:
        return 0.0
    variance = 0.0
    for of_one in sums:
        count, _, second, third, *_ = of_one
        # The coefficients of 1, c, c² and c³ in a share's part of g's error.
        part = np.array(
            [
                -third / count / squares**1.5 + 1.5 * cubes * second / count / squares**2.5,
                -3 * second / count / squares**1.5,
                -1.5 * cubes / squares**2.5,
                1 / squares**1.5,
            ]
        )
        variance += float(np.convolve(part, part) @ of_one) - 6 * float(second / squares) ** 3 / count**2
    return abs(cubes / squares**1.5) + 2 * math.sqrt(max(variance, 0.0))


def tail_check(samples: Samples, room: float = 0.0) -> Check:
    """Whether a few observations decide the error.

    Args:
        samples: the shares.
        room: how much the interval is widened for other reasons: skewness matters that much less beside it.
    """
    margin = 2 * standard_error(samples)
    # Beyond twice the margin a normal tail has nothing left, and a skewed one little.
    part = (margin / (margin + room)) ** 2 if margin > 0 else 1.0
    return below(
        "skewness of the error",
        part * largest_skewness(samples),
        SKEWED,
        FEW,
        "near 0 many rows share the error; towards 1 a few large rewards or weights decide it, and another log would "
        "have others",
        "log more data; rewards that are capped or on a logarithmic scale need less",
    )


def _scaled_sums(samples: Samples) -> list[Float[np.ndarray, " powers"]]:
    """Sums of powers of the shares around their mean, in a unit of their own size: powers of tiny ones underflow."""
    largest = max(largest_share(shares) for shares in samples)
    # A power of two, so that nothing is rounded.
    return [central_sums(times_power_of_two(shares, -math.frexp(largest)[1])) for shares in samples]


def _power(sums: list[Float[np.ndarray, " powers"]], power: int) -> float:
    """The sum of a power of the shares, each kind around its mean."""
    return sum(float(of_one[power]) for of_one in sums)
