"""Where an estimate's error comes from: shares of the sampling error by independent unit, and room beside it.

Two estimates from one log are moved by the same units. The error of their difference is the sum over units of (share in
the first − share in the second). Where the policies are alike, most of it cancels, and the difference is known better
than two intervals beside each other say.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import InputError
from gradientdice.statistics.intervals import standard_error
from gradientdice.statistics.room import Room
from gradientdice.statistics.shares import NOTHING, EachShare, JointShares, ShareSums


@dataclass(frozen=True, eq=False)
class ErrorSources:
    """What an interval is made of.

    Attributes:
        value: the estimate.
        units: (u,) the share of each of the log's independent units in the sampling error.
        starts: (n0,) the share of each initial state, where these are given apart from the rows and matter.
        room: for all else that the interval covers.
        log: the digest of the log.
        seed: for interval methods that draw.
    """

    value: float
    units: Float[np.ndarray, " u"]
    starts: Float[np.ndarray, " n0"] | None
    room: Room
    log: str
    seed: int = 0

    @classmethod
    def of(cls, value: float, samples: EachShare, room: Room, log: str, seed: int = 0) -> ErrorSources:
        """From shares as `independent_shares` gives them: those of the log's units first."""
        return cls(value, samples[0], samples[1] if len(samples) > 1 else None, room, log, seed)

    @property
    def samples(self) -> EachShare:
        """The shares, a list for each kind of unit."""
        return [self.units] if self.starts is None else [self.units, self.starts]

    def correlation(self, other: ErrorSources) -> float:
        """Of the two sampling errors; 0 where one of them has none."""
        both = standard_error(self.samples) * standard_error(other.samples)
        if both == 0:
            return 0.0
        total = _covariance(self.units, other.units)
        if self.starts is not None and other.starts is not None:
            total += _covariance(self.starts, other.starts)
        return min(1.0, max(-1.0, total / both))

    def minus(self, other: Sources) -> ErrorSources:
        """Those of the difference, for two estimates from one log."""
        if isinstance(other, SummedSources):
            raise InputError(
                "One of the estimates is of a log in memory and the other of a scanned one, so that their errors "
                "cannot be paired. Evaluate both on the same log."
            )
        # It takes a pass over all units, and matters only where both have misfit.
        both = self.room.misfit > 0 and other.room.misfit > 0
        correlation = self.correlation(other) if both else 0.0
        return ErrorSources(
            self.value - other.value,
            self.units - other.units,
            _starts(self.starts, other.starts),
            self.room.minus(other.room, correlation),
            self.log,
            self.seed,
        )


@dataclass(frozen=True, eq=False)
class SummedSources:
    """The same for a scanned log: only sums over the shares are known, those of differences too.

    Attributes:
        value: the estimate.
        joint: the sums of all answers that were scored in the same pass.
        column: which of them this is.
        room: for all else that the interval covers.
        seed: for interval methods that draw.
        less: the answer that is taken off.
    """

    value: float
    joint: JointShares
    column: int
    room: Room
    seed: int = 0
    less: int = NOTHING

    @property
    def samples(self) -> list[ShareSums]:
        """The sums, for each kind of unit."""
        return self.joint.samples(self.column, self.less)

    @property
    def pair(self) -> tuple[int, int]:
        """The answer, and what is taken off it."""
        return self.column, self.less

    def minus(self, other: Sources) -> SummedSources:
        """Those of the difference, for two estimates that were scored in one pass."""
        if not (isinstance(other, SummedSources) and other.joint is self.joint):
            raise InputError(
                "Estimates of a scanned log can be compared if one call made both, since a difference is paired by "
                "rows or episodes: give both policies to rank, or all discounts to evaluate."
            )
        assert self.less == other.less == NOTHING
        both = self.room.misfit > 0 and other.room.misfit > 0
        correlation = _correlation(self.joint.covariance([self.pair, other.pair])) if both else 0.0
        return SummedSources(
            self.value - other.value,
            self.joint,
            self.column,
            self.room.minus(other.room, correlation),
            self.seed,
            other.column,
        )


Sources = ErrorSources | SummedSources


def _correlation(covariance: np.ndarray) -> float:
    both = float(np.sqrt(covariance[0, 0] * covariance[1, 1]))
    return min(1.0, max(-1.0, float(covariance[0, 1]) / both)) if both > 0 else 0.0


def _starts(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    """The difference; None where no start moves it."""
    if one is None or other is None:
        return one if other is None else -other
    difference = one - other
    return difference if np.ptp(difference) > 0 else None


def _covariance(one: np.ndarray, other: np.ndarray) -> float:
    return len(one) / (len(one) - 1) * float((one - one.mean()) @ (other - other.mean()))
