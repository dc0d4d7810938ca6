"""Convex combinations: the smallest value of a quadratic form over weights that are 0 or more and add up to 1."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.optimize import nnls

# How much more than the form the sum's own equation counts.
SUM_WEIGHT = 1e4
# A candidate so many times worse than the best has a share of one in as many, and would cost the others their digits.
HOPELESS = 1e6


def convex_weights(form: Float[np.ndarray, "J J"]) -> Float[np.ndarray, " J"]:
    """The w ≥ 0 with Σw = 1 that makes wᵀGw least; negative directions of G, which noise may have, count as 0.

    Example:
        >>> import numpy as np
        >>> convex_weights(np.diag([1.0, 3.0])).round(6)
        array([0.75, 0.25])
    """
    symmetric = (form + form.T) / 2
    own = np.maximum(np.diag(symmetric), 0.0)
    weights = np.zeros(len(form))
    if own.max() == 0:
        return weights + 1 / len(form)
    used = np.flatnonzero(own <= HOPELESS * max(own.min(), own.max() / HOPELESS**2))
    values, vectors = np.linalg.eigh(symmetric[np.ix_(used, used)])
    values = np.maximum(values, 0.0)
    root = np.sqrt(values / (values[-1] or 1.0))[:, None] * vectors.T
    found, _ = nnls(np.vstack([root, np.full(len(used), SUM_WEIGHT)]), np.append(np.zeros(len(used)), SUM_WEIGHT))
    weights[used] = found / found.sum()
    return weights
