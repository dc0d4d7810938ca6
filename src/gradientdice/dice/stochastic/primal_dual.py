"""The paper's stochastic learner: simultaneous gradient steps, descent for one player and ascent for the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gradientdice.base.errors import InputError, require_count, require_number
from gradientdice.dice.saddle import SaddleObjective
from gradientdice.dice.solution import Fit, Solution
from gradientdice.dice.stochastic.averaging import ExponentialAverage
from gradientdice.dice.stochastic.binding import hyper_parameters
from gradientdice.dice.stochastic.fits import as_solution, learned_fit, train
from gradientdice.dice.stochastic.function_class import FunctionClass
from gradientdice.dice.stochastic.initial import Init, UniformInit, require_init
from gradientdice.dice.stochastic.linear import LinearClass
from gradientdice.dice.stochastic.parts import Group
from gradientdice.dice.stochastic.plan import Plan
from gradientdice.dice.stochastic.recorders import Recorder
from gradientdice.dice.stochastic.schedules import Schedule, as_schedule
from gradientdice.dice.stochastic.setup import Setup, log_setup
from gradientdice.dice.stochastic.sources import RowSource
from gradientdice.log.files.reading import as_path
from gradientdice.problem.problem import Problem

if TYPE_CHECKING:
    import optax


@dataclass(frozen=True)
class PrimalDual:
    """Stochastic gradient descent-ascent with tables, linear features or networks, in float32.

    Attributes:
        steps: the number of updates.
        learning_rate: a number, `Constant`, `RobbinsMonro` or `Cosine`.
        batch_size: transitions an update.
        record_every: updates between two points of the learning curve; None is about a hundred points.
        init: where the weights of a table or of linear features start: `UniformInit` or `ConstantInit`. Networks start
            where `MLP` says.
        optimizer: any optax transformation with a learning rate of 1, which is multiplied by ours: `optax.adam(1.0)`,
            `optax.sgd(1.0, momentum=0.9)`, …; None is plain steps.
        clip_norm: the largest norm of a gradient; None is no limit.
        average: the decay of an exponential average of the iterates, which then is the answer; 0 is none.
        target_rate: how fast a copy of the critic follows it that is asked at the next states; None is no copy, and
            the true gradient.
        checkpoint: a folder to which the training writes as it goes and from which it goes on.

    Example:
        >>> import gradientdice as gd
        >>> gd.PrimalDual.paper().batch_size
        128
    """

    steps: int
    learning_rate: float | Schedule = 0.01
    batch_size: int = 1
    record_every: int | None = None
    init: Init = field(default_factory=UniformInit)
    optimizer: optax.GradientTransformation | None = None
    clip_norm: float | None = None
    average: float = 0.0
    target_rate: float | None = None
    checkpoint: Path | None = None

    @classmethod
    def paper(cls, learning_rate: float = 0.01) -> PrimalDual:
        """The paper's setting for networks: plain SGD, batches of 128, 10³ steps, ρ̂ every 10; with `MLP.paper()`."""
        return cls(1000, learning_rate, batch_size=128, record_every=10)

    def __post_init__(self) -> None:
        require_count("steps", self.steps)
        require_count("batch_size", self.batch_size)
        if self.record_every is not None:
            require_count("record_every", self.record_every)
        as_schedule(self.learning_rate)
        require_init(self.init)
        parts = [getattr(self.optimizer, name, None) for name in ("init", "update")]
        if self.optimizer is not None and not all(callable(part) for part in parts):
            raise InputError(f"optimizer must be one of optax, such as optax.adam(1.0), not {self.optimizer!r:.60}.")
        if self.checkpoint is not None:
            object.__setattr__(self, "checkpoint", as_path(self.checkpoint))
        if self.clip_norm is not None:
            require_number("clip_norm", self.clip_norm, low=0, open_low=True)
        require_number("average", self.average, low=0, high=0.9999999)
        if self.target_rate is not None:
            require_number("target_rate", self.target_rate, low=0, high=1, open_low=True)

    def plan(self, estimator: SaddleObjective, functions: FunctionClass) -> Plan:
        """The static part of a run."""
        return Plan(
            estimator=estimator,
            schedule=as_schedule(self.learning_rate),
            functions=functions.with_init(self.init),
            steps=self.steps,
            batch_size=self.batch_size,
            record_every=block_length(self.steps, self.record_every),
            optimizer=self.optimizer,
            clip_norm=self.clip_norm,
            averaging=ExponentialAverage(self.average) if self.average > 0 else None,
            target_rate=self.target_rate,
            with_ridge=estimator.ridge > 0,
        )

    def group(self, estimator: SaddleObjective, setup: Setup) -> Group:
        """One estimator with this solver, on anything that a learner takes."""
        plan = self.plan(estimator, setup.functions)
        return Group(plan, setup.source, setup.recorder, hyper_parameters([estimator], [plan.schedule]))

    def solve(self, estimator: SaddleObjective, source: RowSource, recorder: Recorder, *, seed: int = 0) -> Solution:
        """One run with linear functions on any source of feature rows."""
        group = self.group(estimator, Setup(LinearClass(source.num_features), source, recorder))
        return as_solution(group, train(group, [seed], self.checkpoint))

    def fit(self, estimator: SaddleObjective, problem: Problem) -> Fit:
        """One run on a problem, recording the value estimate."""
        group = self.group(estimator, log_setup(problem, estimator.discount))
        outcome = train(group, [problem.seed], self.checkpoint, progress=problem.progress)
        return learned_fit(estimator, problem, group, outcome)


def block_length(steps: int, record_every: int | None) -> int:
    """Updates between two points of the learning curve; about a hundred points unless it is given."""
    return min(record_every or max(1, steps // 100), steps)
