"""What shapes a training run's program, as against the numbers, seeds and data that are given to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gradientdice.dice.saddle import SaddleObjective
from gradientdice.dice.stochastic.averaging import Averaging
from gradientdice.dice.stochastic.binding import structure_key, traced_numbers
from gradientdice.dice.stochastic.function_class import FunctionClass
from gradientdice.dice.stochastic.schedules import Schedule

if TYPE_CHECKING:
    import optax


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """A training run but for its numbers, seed and data.

    Attributes:
        estimator: a template, whose discount, norm_penalty and ridge each run replaces by its own.
        schedule: a template, whose numbers each run replaces by its own.
        functions: the function class.
        steps: the number of updates.
        batch_size: transitions an update.
        record_every: updates between two points of the learning curve: a block.
        optimizer: what turns gradients into moves; None is plain steps.
        clip_norm: the largest norm of a gradient; None is no limit.
        averaging: the average that is the answer; None is the last iterate.
        target_rate: how fast a copy of the critic follows it that is asked at the next states; None is no copy.
        with_ridge: whether any run has a ridge: shrinking the weights touches all of them at every step.
        projected: whether iterates are kept in balls, as in Algorithm 1.
    """

    estimator: SaddleObjective
    schedule: Schedule
    functions: FunctionClass
    steps: int
    batch_size: int = 1
    record_every: int
    optimizer: optax.GradientTransformation | None = None
    clip_norm: float | None = None
    averaging: Averaging | None = None
    target_rate: float | None = None
    with_ridge: bool = False
    projected: bool = False

    @property
    def plain(self) -> bool:
        """Whether the step is the gradient itself times the rate, which can be added where a minibatch has features."""
        return self.optimizer is None and self.clip_norm is None

    def blocks(self) -> Iterator[tuple[int, int]]:
        """The first step and the number of steps of each block; only the last may be shorter."""
        for start in range(0, self.steps, self.record_every):
            yield start, min(self.record_every, self.steps - start)

    def record_steps(self) -> np.ndarray:
        """The steps after which a point of the curve is recorded."""
        ends = [start + length for start, length in self.blocks()]
        return np.array([0, *ends] if self.functions.records_start else ends)

    def key(self) -> tuple[Any, ...]:
        """What is equal for two plans that one program serves."""
        estimator = structure_key(self.estimator, traced_numbers(self.estimator))
        rest = {name: value for name, value in vars(self).items() if name not in ("estimator", "schedule")}
        return estimator, type(self.schedule), *rest.values()

    def ridged(self, with_ridge: bool) -> Plan:
        """With or without a ridge."""
        return replace(self, with_ridge=with_ridge)
