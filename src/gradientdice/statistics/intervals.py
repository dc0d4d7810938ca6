"""From shares of the error to standard errors and intervals, for every estimator that has influence values.

An estimate's error is, to first order, a sum of independent shares: one for each transition, or for each episode where
episodes are given (exact copies are one unit, see `data/units.py`), and one for each independently sampled initial
state. A row or an episode with a weight is one unit, whatever its weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2, t

from gradientdice.base.errors import InputError, require_count, require_number
from gradientdice.log.transitions import Transitions
from gradientdice.statistics.influence import Influence
from gradientdice.statistics.share_sums import EachShare, Samples, ShareSums, central_sums


def independent_shares(influence: Influence, data: Transitions) -> EachShare:
    """The shares by independent unit: clustered by episode if episodes are given, and copies with their original.

    Initial states that are the episodes' own first states belong to their episodes; others are units of their own.
    """
    varies = varied_starts(influence)
    units = data.units
    sums = units.sums(influence.rows)
    if influence.initial is None:
        return [sums]
    if data.initial_states is None:
        return [sums + units.sums(influence.initial, data.first_rows)]
    return [sums, influence.initial] if varies else [sums]


def varied_starts(influence: Influence) -> bool:
    """Whether the initial states differ in value: one, or many that are all alike, have no share in the error."""
    return influence.initial is not None and len(influence.initial) > 1 and float(np.ptp(influence.initial)) > 0


def standard_error(samples: Samples) -> float:
    """√Σ of squared shares, each kind with its n/(n−1)."""
    total = 0.0
    for shares in samples:
        n = len(shares)
        if n < 2:
            raise InputError(
                "An interval needs at least two independent units, and the log has one row or one episode. Give more, "
                "or leave episodes out if the rows of the one episode are independent."
            )
        total += n / (n - 1) * float(central_sums(shares, 2)[2])
    return math.sqrt(total)


def degrees_of_freedom(samples: Samples) -> float:
    """Of the standard error. Kinds with little part in the variance have little part in them (Welch, Satterthwaite)."""
    error = standard_error(samples)
    if error == 0:
        return float(sum(len(shares) - 1 for shares in samples))
    return 1 / sum((standard_error([shares]) / error) ** 4 / (len(shares) - 1) for shares in samples)


@runtime_checkable
class IntervalMethod(Protocol):
    """A way to turn shares into an interval."""

    def interval(self, value: float, samples: Samples, confidence: float, seed: int) -> tuple[float, float]:
        """(low, high)."""
        ...


def require_method(method: object) -> IntervalMethod:
    """The method itself, or an error if it is none."""
    if isinstance(method, type) or not isinstance(method, IntervalMethod):
        raise InputError(
            "interval must be SkewInterval(), NormalInterval(), BootstrapInterval(…) or EmpiricalLikelihood(), not "
            f"{method!r:.60}."
        )
    return method


def one_by_one(method: object, samples: Samples) -> EachShare:
    """The shares themselves, for a method that resamples or reweights them; refused where only their sums are known."""
    each = [shares for shares in samples if not isinstance(shares, ShareSums)]
    if len(each) < len(samples):
        raise InputError(
            f"{type(method).__name__} needs the shares of all rows or episodes in memory, and a scanned log gives only "
            "their sums: use SkewInterval() or NormalInterval(), or load the log."
        )
    return each


@dataclass(frozen=True)
class NormalInterval:
    """value ± t · standard error, with Student's t for the number of independent units (Welch's, for two kinds)."""

    def interval(self, value: float, samples: Samples, confidence: float, seed: int) -> tuple[float, float]:
        """(low, high)."""
        error = standard_error(samples)
        if error == 0:
            return value, value
        margin = float(t.ppf(0.5 + confidence / 2, degrees_of_freedom(samples))) * error
        return value - margin, value + margin


@dataclass(frozen=True)
class BootstrapInterval:
    """The studentised bootstrap over independent units, on their influence values.

    Attributes:
        replications: how many resamples.
    """

    replications: int = 2000

    def __post_init__(self) -> None:
        require_count("replications", self.replications, low=100)

    def interval(self, value: float, samples: Samples, confidence: float, seed: int) -> tuple[float, float]:
        """(low, high)."""
        rng = np.random.default_rng(seed)
        shift, variance = np.zeros(self.replications), np.zeros(self.replications)
        for shares in one_by_one(self, samples):
            n = len(shares)
            # Resamples in blocks, so that many units need no more than some tens of megabytes.
            block = max(1, 4_000_000 // n)
            for start in range(0, self.replications, block):
                rows = slice(start, min(start + block, self.replications))
                drawn = shares[rng.integers(0, n, size=(rows.stop - rows.start, n))]
                shift[rows] += drawn.sum(axis=1)
                variance[rows] += n * drawn.var(axis=1, ddof=1)
        studentised = shift / np.sqrt(np.maximum(variance, 1e-300))
        low, high = np.quantile(studentised, [0.5 - confidence / 2, 0.5 + confidence / 2])
        error = standard_error(samples)
        return value - float(high) * error, value - float(low) * error


@dataclass(frozen=True)
class EmpiricalLikelihood:
    """Profile empirical likelihood over the influence values: CoinDICE's interval in the linear case.

    Its ends are the values whose best reweighting of the data has −2 log likelihood ratio equal to the χ²₁ quantile.

    References:
        Dai et al., CoinDICE, NeurIPS 2020; Owen, Empirical Likelihood, 2001.
    """

    def interval(self, value: float, samples: Samples, confidence: float, seed: int) -> tuple[float, float]:
        """(low, high)."""
        each = one_by_one(self, samples)
        if len(each) > 1:
            # Two independent samples: the joint profile is that of their sum, to first order a common scale.
            errors = [standard_error([shares]) for shares in samples]
            main = int(np.argmax(errors))
            each = [each[main] * (math.hypot(*errors) / max(errors[main], 1e-300))]
        shares, samples = each[0] * len(each[0]), [each[0]]
        limit = float(chi2.ppf(confidence, 1))
        error = standard_error(samples)
        if error == 0:
            return value, value

        def excess(shift: float) -> float:
            return _likelihood_ratio(shares - shift) - limit

        # Beyond the largest share no reweighting reaches the value, and the ratio is infinite.
        low = _end(excess, -error, float(shares.min()))
        high = _end(excess, error, float(shares.max()))
        return value + low, value + high


def _end(excess: Callable[[float], float], step: float, bound: float) -> float:
    """Where excess crosses 0 between 0 and the bound, in the direction of the step."""
    edge = bound * (1 - 1e-9)
    reach = step
    while abs(reach) < abs(edge) and excess(reach) < 0:
        reach *= 1.5
    reach = reach if abs(reach) < abs(edge) else edge
    return reach if excess(reach) < 0 else float(brentq(excess, 0.0, reach))  # pyright: ignore[reportArgumentType]


def _likelihood_ratio(centred: np.ndarray) -> float:
    """−2 log of the empirical likelihood ratio for a mean of 0: 2 Σ log(1 + t z) at the t with Σ z/(1 + t z) = 0."""
    low, high = float(centred.min()), float(centred.max())
    if low >= 0 or high <= 0:
        return math.inf
    n = len(centred)
    left, right = (1 / n - 1) / high, (1 / n - 1) / low

    def score(multiplier: float) -> float:
        return float(np.sum(centred / (1 + multiplier * centred)))

    multiplier = float(brentq(score, left, right))  # pyright: ignore[reportArgumentType]
    return 2 * float(np.sum(np.log1p(multiplier * centred)))


def require_confidence(confidence: float) -> float:
    """A confidence strictly between 0 and 1."""
    confidence = require_number("confidence", confidence, low=0, high=1, open_low=True)
    if confidence == 1:
        raise InputError("confidence must be below 1: an interval that always covers is the whole line.")
    return confidence
