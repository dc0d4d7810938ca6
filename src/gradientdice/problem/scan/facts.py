"""What every answer reads of a scanned log beside the value: rewards, starts, episodes, what the behaviour earned.

A run of an episode is a row of numbers: its discounted rewards, its length, the weight of its first row, whether it
ended, its rows that count, its weighted rewards, its weight, and its first state.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Num

from gradientdice.log.scanning.episodes import EpisodePass, sums_by_run
from gradientdice.log.scanning.parts import Batch
from gradientdice.log.scanning.passes import Sums

# The columns of a run before its first state.
COLUMNS = 7


@dataclass(eq=False)
class FactsPass(EpisodePass):
    """The first pass over a log; subclasses add counts or moments, and what they need of the starts.

    Attributes:
        discount: γ, for what the behaviour earned.
        starts: whether the first state of each episode is an initial state.
    """

    discount: float = 1.0
    starts: bool = False

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that it reads beside those that every log has."""
        return ("terminated", "weights", "episodes", "initial_states")

    @abstractmethod
    def start_sums(self, states: Num[np.ndarray, "m ..."], weights: Float[np.ndarray, " m"]) -> Sums:
        """What some initial states add."""

    @property
    def reducers(self) -> dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]:
        """The range of the rewards does not add up."""
        return {"reward_low": np.minimum, "reward_high": np.maximum}

    def run_values(self, batch: Batch, first: Int[np.ndarray, " m"]) -> Float[np.ndarray, "m k"]:
        """A row of numbers for each run."""
        data = batch.data
        weights, rewards, n = data.row_weights, data.rewards, len(data)
        length = np.diff(np.append(first, n))
        powers = self.discount ** np.arange(length.max())
        step = np.arange(n) - np.repeat(first, length)
        by_row = np.column_stack([powers[step] * rewards, weights > 0, weights * rewards, weights])
        sums = sums_by_run(by_row, first)
        states = data.states[first].astype(np.float64).reshape(len(first), -1)
        ended = data.ended[first + length - 1]
        return np.column_stack([sums[:, 0], length, weights[first], ended, sums[:, 1:], states])

    def joined(self, group: Int[np.ndarray, " m"], runs: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "g k"]:
        """Later pieces are discounted by the length of the earlier ones; the first has the start, the last the end."""
        first = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
        last = np.append(first[1:], len(group)) - 1
        before = np.cumsum(runs[:, 1]) - runs[:, 1]
        discounted = runs[:, 0] * self.discount ** (before - before[first][group])
        whole = runs[first]
        whole[:, 0] = np.add.reduceat(discounted, first)
        whole[:, 1] = np.add.reduceat(runs[:, 1], first)
        whole[:, 3] = runs[last, 3]
        whole[:, 4:COLUMNS] = np.add.reduceat(runs[:, 4:COLUMNS], first, axis=0)
        return whole

    def closed(self, runs: Float[np.ndarray, "m k"]) -> Sums:
        """The behaviour's sums, the number of units, and the starts."""
        start, counted = runs[:, 2], runs[:, 4]
        behavior = _behavior(*self.earned(runs), float(start.sum()))
        found = {"behavior": behavior, "units": np.array([(counted > 0).sum()])}
        return {**found, **(self.start_sums(self.as_states(runs), start) if self.starts else {})}

    def earned(self, runs: Float[np.ndarray, "m k"]) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """What whole episodes earned, weighted, and the weight of the discounted steps that they show."""
        discounted, length, start, ended, _, earned, weight = runs[:, :COLUMNS].T
        if self.discount == 1:
            return earned, weight
        shown = np.where(ended > 0, 1.0, 1 - self.discount**length)
        return (1 - self.discount) * start * discounted, start * shown

    def single_rows(self, batch: Batch) -> Sums:
        """Rows without episodes show what the behaviour earns at discount 1 only, and no starts."""
        given = batch.data.weights
        units = {"units": np.array([len(batch.data) if given is None else (given > 0).sum()])}
        if self.discount < 1:
            return units
        weights = batch.data.row_weights
        return {**units, "behavior": _behavior(weights * batch.data.rewards, weights, 0.0)}

    def as_states(self, runs: Float[np.ndarray, "m k"]) -> Num[np.ndarray, "m ..."]:
        """The first states of some runs."""
        return runs[:, COLUMNS:]


def _behavior(earned: np.ndarray, mass: np.ndarray, started: float) -> np.ndarray:
    """How many episodes show anything; Σ of what they earned and of their mass, of the products; their start weight."""
    products = (earned @ earned, earned @ mass, mass @ mass)
    return np.array([(mass > 0).sum(), earned.sum(), mass.sum(), *products, started])


class FactsCounter:
    """Sums over rows that every first pass needs."""

    def __init__(self, work: FactsPass) -> None:
        self._work = work
        self._total: Sums = {}

    def add(self, batch: Batch) -> None:
        """Adds the rows of a batch."""
        data, work = batch.data, self._work
        found = {"rows": np.array([len(data)])}
        rewards, ended = data.rewards, data.ended
        if data.weights is not None:
            weights, counted = data.weights, data.weights > 0
            totals = (weights.sum(), weights @ rewards, weights @ rewards**2, (ended & counted).sum(), ended.sum())
            rewards = rewards[counted]
        else:
            ends = np.count_nonzero(ended)
            # A product by BLAS would start threads, which wait for the cores that read the log.
            totals = (len(data), rewards.sum(), np.square(rewards).sum(), ends, ends)
        if len(rewards):
            found |= {"reward_low": np.array([rewards.min()]), "reward_high": np.array([rewards.max()])}
        found["totals"] = np.array(totals, dtype=np.float64)
        if batch.starts is not None:
            found |= work.start_sums(batch.starts, np.ones(len(batch.starts)))
        self._total = work.together(self._total, found)

    def sums(self) -> Sums:
        """What they come to."""
        return self._total
