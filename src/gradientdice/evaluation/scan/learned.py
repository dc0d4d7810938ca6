"""A stochastic solver over a scanned log: training on minibatches of it, then one pass for the value over every row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Num

from gradientdice.base.errors import InputError
from gradientdice.dice.stochastic.functions import predict
from gradientdice.dice.stochastic.primal_dual import NO_INTERVAL, PrimalDual, as_solution, judged, train
from gradientdice.dice.stochastic.setup import Feed, scanned_setup
from gradientdice.estimators.answer import Answer
from gradientdice.evaluation.estimate import Estimate
from gradientdice.evaluation.interval import Intervals
from gradientdice.evaluation.scan.facts import estimate_without_interval
from gradientdice.functions.mlp import MLP
from gradientdice.log.scanning.parts import Batch
from gradientdice.log.scanning.passes import Sums
from gradientdice.log.transitions import Transitions
from gradientdice.problem.scan.asked import Asked
from gradientdice.problem.scan.facts import FactsCounter, FactsPass
from gradientdice.statistics.evidence import Evidence
from gradientdice.statistics.mass import MassSums


def learned_estimate(asked: Asked, estimator: Any, intervals: Intervals, solver: PrimalDual) -> Estimate:
    """The estimate of a trained ratio, without an interval."""
    if intervals.required:
        raise InputError(f"interval= cannot be used: {NO_INTERVAL}. Leave it out, or use the closed form.")
    log, discount, folder = asked.log, estimator.discount, asked.run.checkpoint
    setup = scanned_setup(log, asked.policy, asked.functions, discount)
    feed = setup.source
    assert isinstance(feed, Feed)
    group = solver.group(estimator, setup)
    place = folder / "training" if solver.checkpoint is None and folder is not None else solver.checkpoint
    outcome = train(group, [asked.seed], place, progress=asked.run.progress)
    params = jax.tree.map(lambda array: np.asarray(array[0, 0]), outcome.players.ratio)
    is_network = isinstance(asked.functions, MLP)

    def ratio(inputs: np.ndarray) -> np.ndarray:
        raw = predict(params, inputs) if is_network else inputs.astype(np.float64) @ params
        return np.asarray(estimator.ratio(raw), dtype=np.float64)

    def ratio_of(data: Transitions) -> np.ndarray:
        return feed.share * ratio(feed.inputs(data))

    starts, size = asked.has_first_states, feed.rows.epoch_rows
    sums = asked.summed(lambda spill: LearnedPass(spill, discount, starts, ratio_of=ratio_of, size=size))
    earned, mass, weight = (float(total) for total in sums["learned"])
    # A ratio to the log with the absorbing state's own row, whose input is its indicator, the last.
    resting = (1 - feed.share) * float(ratio(np.eye(1, feed.width, feed.width - 1, dtype=np.float32))[0])
    solution = judged(as_solution(group, outcome), log.sample.rewards, None)
    answer = Answer(
        value=earned / weight,
        solution=solution,
        evidence=Evidence(mean_ratio=mass / weight + resting),
        functions=repr(asked.functions) if is_network else type(asked.functions).__name__,
        status=solution.status,
        notes=(NO_INTERVAL, "what is assumed about the log was not tested"),
    )
    found = MassSums.unpacked(sums["mass"], size)
    return estimate_without_interval(asked, estimator, answer, intervals, (sums, found, repr(solver)))


@dataclass(eq=False)
class LearnedPass(FactsPass):
    """What every answer reads of the log, and Σ w τ r, Σ w τ and Σ w of a ratio.

    Attributes:
        ratio_of: τ of some rows, as a ratio to the rows alone.
        size: the number of rows of the log.
    """

    ratio_of: Callable[[Transitions], np.ndarray] = field(kw_only=True)
    size: int = field(kw_only=True)

    @property
    def kind(self) -> str:
        """In a word."""
        return "values"

    @property
    def reducers(self) -> dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]:
        """The heaviest rows do not add up."""
        return {**super().reducers, "mass": self._both}

    def counter(self) -> _Counter:
        """What sums over the rows of one part."""
        return _Counter(self)

    def start_sums(self, states: Num[np.ndarray, "m ..."], weights: Float[np.ndarray, " m"]) -> Sums:
        """Nothing: the starts were needed in training."""
        return {}

    def _both(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return (MassSums.unpacked(left, self.size) + MassSums.unpacked(right, self.size)).packed()


class _Counter(FactsCounter):
    def __init__(self, work: LearnedPass) -> None:
        super().__init__(work)
        self._learned = work

    def add(self, batch: Batch) -> None:
        """Adds the rows of a batch."""
        super().add(batch)
        weights, ratio = batch.data.row_weights, self._learned.ratio_of(batch.data)
        mass = weights * ratio
        found = {
            "learned": np.array([mass @ batch.data.rewards, mass.sum(), weights.sum()]),
            "mass": MassSums.of(mass, ratio, self._learned.size).packed(),
        }
        self._total = self._learned.together(self._total, found)
