"""Steps of a log with the step before them, and how strongly one column goes with another.

A step has a past where the rows are in time order. The figure of a group of instruments z_j is S = Σ_j (Σ_t e_t
z_tj)², in standard deviations of noise: it is set against the same sum for targets whose order or signs are random.
Under noise S is near a multiple of χ² with ν degrees of freedom, ν = 2 E[S]² / Var[S], and the cube root of such a sum
is nearly normal (Wilson and Hilferty, The distribution of chi-square, PNAS 1931). Groups are put together in the same
way: the sum of their squared scores, those above 0, against that of the random versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.sparse import csr_array

from gradientdice.log.sequence import follows_in_time
from gradientdice.log.transitions import Transitions

# So many random versions give the mean and the spread of the noise well enough: ν is known to a fifth.
DRAWS = 60


def dependence(
    parts: Iterable[tuple[Sequence[Float[np.ndarray, "m k"] | csr_array], Float[np.ndarray, "m draws"]]],
) -> float:
    """The score of all groups of instruments with all targets together; 0 without targets.

    Args:
        parts: for each target, the groups of instruments (one row per step) and the target, its random versions after
            it. The random versions of all targets belong together, draw by draw.
    """
    return combined_score([score for groups, versions in parts for score in group_scores(groups, versions)])


def group_scores(
    groups: Sequence[Float[np.ndarray, "m k"] | csr_array], versions: Float[np.ndarray, "m draws"]
) -> list[Float[np.ndarray, " draws"]]:
    """For each group of instruments the score of a target, and those of its random versions after it."""
    return [normal_scores(np.sum(np.asarray(group.T @ versions) ** 2, axis=0)) for group in groups]


def combined_score(scores: Sequence[Float[np.ndarray, " draws"]]) -> float:
    """The scores of all groups together; 0 without any."""
    if not len(scores):
        return 0.0
    return float(normal_scores(np.sum(np.maximum(scores, 0.0) ** 2, axis=0))[0])


def signed(target: Float[np.ndarray, " m"], signs: Float[np.ndarray, "m draws"]) -> Float[np.ndarray, "m versions"]:
    """A target, and its versions with random signs."""
    versions = np.empty((len(target), 1 + signs.shape[1]))
    versions[:, 0] = target
    np.multiply(target[:, None], signs, out=versions[:, 1:])
    return versions


def random_signs(count: int, rng: np.random.Generator) -> Float[np.ndarray, "m draws"]:
    """Signs for the random versions."""
    bits = np.unpackbits(rng.integers(256, size=(count, -(-DRAWS // 8)), dtype=np.uint8), axis=1)
    return 2.0 * bits[:, :DRAWS] - 1.0


def normal_scores(sums: Float[np.ndarray, " draws"]) -> Float[np.ndarray, " draws"]:
    """Sums of squares as standard normal scores, by the mean and the variance of all but the first; 0 without any."""
    mean, variance = float(sums[1:].mean()), float(sums[1:].var(ddof=1))
    if mean <= 0 or variance <= 0:
        return np.zeros(len(sums))
    spread = variance / (9 * mean**2)  # 2 / 9ν
    return (np.cbrt(sums / mean) - (1 - spread)) / np.sqrt(spread)


def chi_square_score(value: float, freedom: int) -> float:
    """A χ² number as a standard normal score; 0 without degrees of freedom."""
    if freedom < 1:
        return 0.0
    spread = 2 / (9 * freedom)
    return float((np.cbrt(value / freedom) - (1 - spread)) / np.sqrt(spread))


# Steps that are looked at, in blocks spread over the log; more see no more than they need and take longer.
MOST_STEPS = 20_000
BLOCK = 500
# How far back means look. Values whose mean over the log is 0 go against their own sum so far, the more so the longer
# it is; over a few steps that cannot be seen.
WINDOW = 20


@dataclass(frozen=True, eq=False)
class Past:
    """Some rows of a log in time order, and where the run of rows that each belongs to begins.

    Attributes:
        rows: (m,) rows of the log.
        start: (m,) the position among them at which the run begins.
    """

    rows: Int[np.ndarray, " m"]
    start: Int[np.ndarray, " m"]

    @classmethod
    def of(cls, data: Transitions, most: int = MOST_STEPS) -> Past | None:
        """The past of a log's rows; None if they are not in time order, or no row follows another."""
        order = data.time_order
        if order is None:
            return None
        begins = np.append(True, ~follows_in_time(data, order))
        if len(order) > most:
            blocks = np.linspace(0, len(order) - BLOCK, most // BLOCK).astype(np.int64)
            chosen = (blocks[:, None] + np.arange(BLOCK)).ravel()
            order, begins = order[chosen], begins[chosen]
            begins[::BLOCK] = True
        found = cls(order, np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0)))
        return found if found.known.any() else None

    @cached_property
    def steps(self) -> Int[np.ndarray, " m"]:
        """How many steps of its run came before each."""
        return np.arange(len(self.start)) - self.start

    @cached_property
    def known(self) -> Bool[np.ndarray, " m"]:
        """Which steps have one before them."""
        return self.steps > 0

    def before(self, values: Shaped[np.ndarray, " m"], lag: int = 1) -> Shaped[np.ndarray, " m"]:
        """The values so many steps before, or at the start of the run."""
        return values[np.maximum(np.arange(len(self.start)) - lag, self.start)]

    def mean(self, values: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
        """The mean of the values of up to `WINDOW` earlier steps of the run, times the root of their number.

        So scaled, the mean of noise is of the same size everywhere. It is 0 at the start.
        """
        total = np.append(0.0, np.cumsum(values))
        count = np.minimum(self.steps, WINDOW)
        return (total[:-1] - total[np.arange(len(values)) - count]) / np.sqrt(np.maximum(count, 1))
