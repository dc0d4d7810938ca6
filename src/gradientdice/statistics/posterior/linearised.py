"""The Bayesian bootstrap to first order: the value moved by its influence values.

    ρ ≈ ρ̂ + Σ_u g_u s_u / ḡ,     s_u the share of unit u in the error,  g_u exponential, ḡ their mean.

It is for answers that cannot be solved again thousands of times: searched features, large tables, networks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradientdice.statistics.posterior.units import Drawn, GammaWeights
from gradientdice.statistics.shares import EachShare


@dataclass(frozen=True, eq=False)
class LinearisedDraws:
    """A value and the shares in its error, ready to be weighted.

    Attributes:
        value: ρ̂.
        samples: the shares by independent unit: of rows or episodes, then of starts where those are units.
    """

    value: float
    samples: EachShare

    @property
    def weights(self) -> GammaWeights:
        """The weights to be drawn."""
        ones = [np.ones(len(shares)) for shares in self.samples]
        return GammaWeights(ones[0], ones[1] if len(ones) > 1 else None)

    def values(self, drawn: Drawn) -> Float[np.ndarray, " b"]:
        """ρ of each draw."""
        value = np.full(len(drawn.rows), self.value)
        for weights, shares in zip((drawn.rows, drawn.starts), self.samples, strict=False):
            assert weights is not None
            value += weights @ shares / weights.mean(axis=1)
        return value
