"""How strongly some targets go with some instruments, in standard deviations of noise.

The figure of a group of instruments z_j is S = Σ_j (Σ_t e_t z_tj)², set against the same sum for targets whose order or
signs are random. Under noise S is near a multiple of χ² with ν degrees of freedom, ν = 2 E[S]² / Var[S], and the cube
root of such a sum is nearly normal (Wilson and Hilferty, The distribution of chi-square, PNAS 1931). Groups are put
together in the same way: the sum of their squared scores, those above 0, against that of the random versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_array

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
