"""How the target's mass, weight times ratio, is spread over the rows of a log: sums, and the heaviest rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

# Where the target is so much denser than the log, the log is thin.
THIN = 20
# One row in so many is among the heaviest.
HEAVIEST = 1000


@dataclass(frozen=True, eq=False)
class MassSums:
    """Sums over rows; those of two parts of a log add up.

    Attributes:
        count: the number of rows.
        total: Σ|m|, of their masses m.
        squares: Σm².
        negative: Σ|m| where m is negative.
        thin: Σ|m| where the target is over 20 times denser than the log.
        top: the largest |m|, in descending order: as many as the figures of the whole log need.
        size: the number of rows of the whole log.
    """

    count: float
    total: float
    squares: float
    negative: float
    thin: float
    top: Float[np.ndarray, " k"]
    size: int

    @classmethod
    def of(
        cls,
        mass: Float[np.ndarray, " n"],
        density: Float[np.ndarray, " n"],
        size: int | None = None,
        copies: Float[np.ndarray, " n"] | None = None,
    ) -> MassSums:
        """The sums over some rows.

        Args:
            mass: weight times ratio.
            density: how much denser than the log the target is.
            size: the number of rows of the whole log; None if these are all.
            copies: how many rows each stands for; None is one each.
        """
        size, absolute = len(mass) if size is None else size, np.abs(mass)
        if copies is None:
            # In units of the largest where they are the whole log, so that squares of tiny weights do not vanish.
            if size == len(mass):
                largest = float(absolute.max())
                absolute = absolute / largest if largest > 0 else np.ones(size)
            total, squares, count = float(absolute.sum()), float(absolute @ absolute), float(len(mass))
            negative, thin = (float(absolute[rows].sum()) for rows in (mass < 0, density > THIN))
        else:
            counted = copies * absolute
            total, squares, count = float(counted.sum()), float(counted @ absolute), float(copies.sum())
            negative, thin = (float(counted[rows].sum()) for rows in (mass < 0, density > THIN))
        return cls(count, total, squares, negative, thin, _largest(absolute, kept_rows(size), copies), size)

    def __add__(self, other: MassSums) -> MassSums:
        return MassSums(
            self.count + other.count,
            self.total + other.total,
            self.squares + other.squares,
            self.negative + other.negative,
            self.thin + other.thin,
            _largest(np.concatenate([self.top, other.top]), kept_rows(self.size)),
            self.size,
        )

    def packed(self) -> Float[np.ndarray, " m"]:
        """All but the size in one array."""
        return np.concatenate([[self.count, self.total, self.squares, self.negative, self.thin], self.top])

    @classmethod
    def unpacked(cls, numbers: Float[np.ndarray, " m"], size: int) -> MassSums:
        """From `packed`."""
        count, total, squares, negative, thin = (float(number) for number in numbers[:5])
        return cls(count, total, squares, negative, thin, numbers[5:], size)

    @property
    def effective_size(self) -> float:
        """(Σ|m|)² / Σm²."""
        return self.total**2 / self.squares if self.squares > 0 else self.count

    def share(self, part: float) -> float:
        """A part of the absolute mass, as a share of it."""
        return part / self.total if self.total > 0 else 0.0

    @property
    def largest_share(self) -> float:
        """The share of the heaviest rows."""
        heaviest = max(1, self.size // HEAVIEST)
        return float(self.top[:heaviest].sum()) / self.total if self.total > 0 else heaviest / self.count

    @property
    def tail_index(self) -> float:
        """Hill's tail index from the largest √n masses; infinite where they are all equal."""
        count = max(2, int(math.sqrt(self.size)))
        if self.size <= count or self.top[count] <= 0:
            return math.inf
        excess = float(np.mean(np.log(self.top[:count] / self.top[count])))
        return 1 / excess if excess > 0 else math.inf


def kept_rows(size: int) -> int:
    """How many of the heaviest rows of a log the figures need."""
    return min(size, max(size // HEAVIEST, int(math.sqrt(size)) + 1, 3))


def _largest(values: np.ndarray, count: int, copies: np.ndarray | None = None) -> np.ndarray:
    """The largest values in descending order, so many of them, or all if there are fewer."""
    if copies is not None:
        order = np.argsort(-values)
        before = np.cumsum(copies[order]) - copies[order]
        used = order[before < count]
        return np.repeat(values[used], np.minimum(copies[used], count).astype(np.int64))[:count]
    if len(values) > count:
        values = np.partition(values, len(values) - count)[len(values) - count :]
    return np.sort(values)[::-1]
