"""Averages of the iterates, which are then the answer in place of the last one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from gradientdice.dice.stochastic.function_class import Players


class Average(NamedTuple):
    """The mean of the iterates so far and, where it counts, their total weight."""

    mean: Players
    total: Any = None


@dataclass(frozen=True)
class ExponentialAverage:
    """z̄ ← decay · z̄ + (1 − decay) · z, from the first parameters on."""

    decay: float

    def start(self, players: Players) -> Average:
        """The average before any update."""
        return Average(players)

    def include(self, average: Average, players: Players, rate: Any) -> Average:
        """With one more iterate."""
        return Average(jax.tree.map(lambda a, p: self.decay * a + (1 - self.decay) * p, average.mean, players))


@dataclass(frozen=True)
class StepWeightedAverage:
    """z̄ = Σ α_t z_t / Σ α_t, as in Algorithm 1."""

    def start(self, players: Players) -> Average:
        """Nothing yet, with no weight."""
        return Average(jax.tree.map(jnp.zeros_like, players), jnp.zeros_like(players.norm_multiplier))

    def include(self, average: Average, players: Players, rate: Any) -> Average:
        """With one more iterate."""
        total = average.total + rate
        return Average(jax.tree.map(lambda old, new: old + (new - old) * (rate / total), average.mean, players), total)


Averaging = ExponentialAverage | StepWeightedAverage
