"""The behaviour's own value as an answer among others: what its episodes earned, and their shares in that mean's error.

    value = Σ_u e_u / Σ_u m_u,   share of unit u = (e_u − value · m_u) / Σ m,

with e_u what the episode earned, weighted and discounted, and m_u the weight of the steps that it shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from gradientdice.log.scanning.parts import Batch
from gradientdice.log.scanning.passes import Sums
from gradientdice.problem.scan.behavior import BehaviorPass
from gradientdice.problem.scan.facts import COLUMNS


@dataclass(frozen=True, eq=False)
class SeenBehavior:
    """What episodes show of the behaviour's value (without episodes, at discount 1: what rows show).

    Attributes:
        discount: γ.
        value: the behaviour's value.
        mass: Σ m.
        unseen: the share of the discounted steps that lies after time limits.
    """

    discount: float
    value: float
    mass: float
    unseen: float

    @classmethod
    def of(cls, discount: float, sums: Sums) -> SeenBehavior:
        """From the sums of a pass over the log."""
        _, earned, mass, _, _, _, started = (float(part) for part in sums["behavior"])
        return cls(discount, earned / mass, mass, 0.0 if discount == 1 else max(0.0, 1 - mass / started))

    @cached_property
    def _runs(self) -> BehaviorPass:
        return BehaviorPass(discount=self.discount)

    def run_values(self, batch: Batch, first: Int[np.ndarray, " m"]) -> Float[np.ndarray, "m k"]:
        """What is known of each run."""
        return self._runs.run_values(batch, first)[:, :COLUMNS]

    def joined(self, group: Int[np.ndarray, " m"], runs: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "g k"]:
        """Pieces of one episode as one."""
        return self._runs.joined(group, runs)

    def shares(self, runs: Float[np.ndarray, "m k"]) -> Float[np.ndarray, " m"]:
        """The shares of whole episodes."""
        earned, mass = self._runs.earned(runs)
        return (earned - self.value * mass) / self.mass

    def row_shares(self, rewards: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The shares of rows that are no episodes, at discount 1."""
        return weights * (rewards - self.value) / self.mass
