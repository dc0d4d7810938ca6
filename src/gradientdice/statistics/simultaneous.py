"""Statements about several values or differences from one log at once: intervals that hold together, and the largest.

The multiplier bootstrap gives each independent unit a standard normal weight g_u and looks at Σ_u g_u s_uj, with s_uj
the unit's share in the error of value j. Given the log, these sums are normal with covariance Σ_u s_ui s_uj, so that
they are drawn from that normal distribution directly, which takes no pass over the units. Intervals hold together if
each is as wide as the quantile of the largest studentised sum asks for. From the same draws follow the probability that
each value is the largest, and a set that contains the largest.

References:
    Chernozhukov, Chetverikov and Kato, Gaussian Approximations and Multiplier Bootstrap for Maxima of Sums of
    High-Dimensional Random Vectors, Annals of Statistics 2013.
    Hsu, Constrained Simultaneous Confidence Intervals for Multiple Comparisons with the Best, Annals of Statistics
    1984, for sets that contain the best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.stats import norm

from gradientdice.statistics.intervals import standard_error
from gradientdice.statistics.room import APART, margin
from gradientdice.statistics.sources import ErrorSources, Sources, SummedSources

# Draws of the joint error: a quantile at 95% is then known to about a hundredth of a standard deviation.
DRAWS = 20_000


def covariance(sources: Sequence[Sources]) -> Float[np.ndarray, "P P"]:
    """Of the sampling errors of several values from one log; each kind of unit with its n/(n−1)."""
    summed = [own for own in sources if isinstance(own, SummedSources)]
    if summed:
        return summed[0].joint.covariance([own.pair for own in summed])
    return _of_shares([own for own in sources if isinstance(own, ErrorSources)])


def _of_shares(sources: Sequence[ErrorSources]) -> Float[np.ndarray, "P P"]:
    """The same for a log in memory."""
    total = _products(np.array([own.units for own in sources]))
    starts = [own.starts for own in sources]
    size = next((len(own) for own in starts if own is not None), 0)
    if size > 1:
        total += _products(np.array([np.zeros(size) if own is None else own for own in starts]))
    return total


def joint_confidence(sources: Sequence[Sources], confidence: float, *, one_sided: bool = False) -> float:
    """The confidence that each of several intervals must have, so that all hold at once with the confidence given.

    Args:
        sources: of the values (or differences); those without any error need no interval.
        confidence: that all hold.
        one_sided: whether only the lower ends must hold. The confidence returned is then that of the two-sided
            interval with such a lower end.
    """
    single = 2 * confidence - 1 if one_sided else confidence
    uncertain = [own for own in sources if standard_error(own.samples) > 0]
    if len(uncertain) < 2:
        return single
    drawn = studentised(covariance(uncertain))
    largest = drawn.max(axis=1) if one_sided else np.abs(drawn).max(axis=1)
    needed = 2 * float(norm.cdf(np.quantile(largest, confidence))) - 1
    return max(single, needed)


def studentised(cov: Float[np.ndarray, "P P"]) -> Float[np.ndarray, "draws P"]:
    """Draws of the joint error, each column in units of its standard deviation."""
    return draws(cov) / np.sqrt(np.diag(cov))


def draws(cov: Float[np.ndarray, "P P"]) -> Float[np.ndarray, "draws P"]:
    """Draws of the joint error; always the same ones, so that answers can be repeated."""
    values, vectors = np.linalg.eigh(cov)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.random.default_rng(0).normal(size=(DRAWS, len(cov))) @ factor.T


def joint_covariance(sources: Sequence[Sources], confidence: float) -> Float[np.ndarray, "P P"]:
    """The covariance of all that the intervals cover, as if all of it were normal.

    Misfit that other kinds of Q show moves all values by their own distances to those answers, in common; the rest of
    what widens an interval is taken for independent errors of the sizes that it is widened for.
    """
    total = covariance(sources)
    common = np.array([_common_misfit(own) for own in sources])
    total += np.outer(common, common)
    for number, own in enumerate(sources):
        below, above = own.room.sides(confidence)
        rest = (below + above) / 2 / margin(1.0, confidence) - abs(common[number])
        total[number, number] += max(0.0, rest) ** 2
    return total


def _common_misfit(sources: Sources) -> float:
    """The misfit with the sign of the distance behind it; 0 where there is none."""
    return APART * max(sources.room.distances, key=abs, default=0.0)


def _products(shares: Float[np.ndarray, "P u"]) -> Float[np.ndarray, "P P"]:
    count = shares.shape[1]
    centred = shares - shares.mean(axis=1, keepdims=True)
    return count / (count - 1) * centred @ centred.T


# Values that differ by less than this share of their size are ties.
TIE = 1e-12
# If the clearest differences do not show that a value is not the largest, others seldom do.
MOST_LOOKED_AT = 3


def best_probabilities(sources: Sequence[Sources], confidence: float) -> Float[np.ndarray, " P"]:
    """The share of draws from the joint normal of the errors in which each value is the largest; ties are split.

    The normal has the values as its mean, and all that the intervals cover as its variance. Its draws are the values
    that a reader with no opinion beforehand would hold possible.
    """
    values = np.array([own.value for own in sources])
    drawn = values + draws(joint_covariance(sources, confidence))
    largest = drawn.max(axis=1, keepdims=True)
    winners = drawn >= largest - TIE * np.abs(largest)
    return (winners / winners.sum(axis=1, keepdims=True)).mean(axis=0)


def best_set(
    sources: Sequence[Sources], confidence: float, low_end: Callable[[Sources, float], float]
) -> Bool[np.ndarray, " P"]:
    """Which values may be the largest: a set that contains the largest with the given confidence.

    A value is left out if another one is shown to be larger. Whether the largest itself is left out is one test, of
    its differences to all others at once, so that only that test's level counts, and not how many values there are.

    Args:
        sources: of the values, at least one.
        confidence: that the largest is in the set.
        low_end: the lower end of the interval of a difference, by its sources and a confidence. It knows of skewness
            and of all that the interval covers beside chance.
    """
    values, cov = np.array([own.value for own in sources]), covariance(sources)
    joint = draws(cov)
    kept = []
    for number in range(len(values)):
        others = _Others.of(number, values, cov, joint)
        level = others.level(confidence)
        kept.append(not any(low_end(sources[k].minus(sources[number]), level) > 0 for k in others.ahead(level)))
    return np.array(kept)


@dataclass(frozen=True, eq=False)
class _Others:
    """All values but one, beside that one.

    Attributes:
        lead: (P,) how far each is ahead, in standard deviations of the difference; infinite where that has no error.
        joint: (draws, k) errors of the differences that have any, in standard deviations.
    """

    lead: Float[np.ndarray, " P"]
    joint: Float[np.ndarray, "draws k"]

    @classmethod
    def of(cls, number: int, values: np.ndarray, cov: np.ndarray, joint: np.ndarray) -> _Others:
        """Those beside one value."""
        variance = np.diag(cov) + cov[number, number] - 2 * cov[number]
        uncertain = variance > TIE * (np.diag(cov) + cov[number, number])
        deviation = np.sqrt(np.where(uncertain, variance, 1.0))
        ahead = values - values[number]
        certain = np.where(ahead > 0, np.inf, -np.inf)
        apart = (joint[:, uncertain] - joint[:, [number]]) / deviation[uncertain]
        return cls(np.where(uncertain, ahead / deviation, certain), apart)

    def level(self, confidence: float) -> float:
        """The confidence of two-sided intervals whose lower ends hold for all differences at once."""
        if self.joint.shape[1] < 2:
            return 2 * confidence - 1
        quantile = max(float(norm.ppf(confidence)), float(np.quantile(self.joint.max(axis=1), confidence)))
        return 2 * float(norm.cdf(quantile)) - 1

    def ahead(self, level: float) -> Int[np.ndarray, " k"]:
        """Those that are far enough ahead to be looked at more closely, the clearest first."""
        order = np.argsort(-self.lead)[:MOST_LOOKED_AT]
        return order[self.lead[order] > float(norm.ppf(0.5 + level / 2))]
