"""Which of several values is the largest? The probability of each, and a set that contains it.

References:
    Hsu, Constrained Simultaneous Confidence Intervals for Multiple Comparisons with the Best, Annals of Statistics
    1984, for sets that contain the best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.stats import norm

from gradientdice.statistics.simultaneous import covariance, draws, joint_covariance
from gradientdice.statistics.sources import Sources

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
