"""What the behaviour earns at a further discount, for answers at several."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Num

from gradientdice.log.scanning.parts import Batch
from gradientdice.log.scanning.passes import Sums
from gradientdice.problem.scan.facts import FactsPass


@dataclass(eq=False)
class BehaviorPass(FactsPass):
    """The behaviour's sums alone."""

    @property
    def kind(self) -> str:
        """In a word."""
        return "behavior"

    def counter(self) -> _Nothing:
        """Nothing is summed over rows whatever their episodes."""
        return _Nothing()

    def start_sums(self, states: Num[np.ndarray, "m ..."], weights: Float[np.ndarray, " m"]) -> Sums:
        """Nothing: the first discount's pass has the starts."""
        return {}


class _Nothing:
    def add(self, batch: Batch) -> None:
        """Adds nothing."""

    def sums(self) -> Sums:
        """Nothing."""
        return {}
