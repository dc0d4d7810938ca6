"""Several values (or differences) from one log at once: their joint error, and intervals that hold together.

The multiplier bootstrap gives each independent unit a standard normal weight g_u and looks at Σ_u g_u s_uj, with s_uj
the unit's share in the error of value j. Given the log, these sums are normal with covariance Σ_u s_ui s_uj, so that
they are drawn from that normal distribution directly, which is the same and takes no pass over the units. Intervals
hold together if each is as wide as the quantile of the largest studentised sum asks for.

References:
    Chernozhukov, Chetverikov and Kato, Gaussian Approximations and Multiplier Bootstrap for Maxima of Sums of
    High-Dimensional Random Vectors, Annals of Statistics 2013.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
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
