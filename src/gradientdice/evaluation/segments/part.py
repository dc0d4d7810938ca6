"""What one segment contributes, before it has an interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from gradientdice.statistics.influence import Influence


@dataclass(frozen=True, eq=False)
class Group:
    """A segment of the initial states or of the rows.

    Attributes:
        name: its label.
        members: which of them belong to it.
    """

    name: object
    members: Bool[np.ndarray, " n"]


@dataclass(frozen=True, eq=False)
class Part:
    """A number and each observation's share in its error."""

    value: float
    influence: Influence


def weighted_mean(values: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"]) -> float:
    """The mean; 0 where nothing counts."""
    total = float(weights.sum())
    return float(weights @ values) / total if total > 0 else 0.0
