"""The paper's stochastic learner: simultaneous gradient steps, descent for one player and ascent for the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from gradientdice.errors import InputError, require_count, require_number
from gradientdice.estimators import Estimator
from gradientdice.functions.design import Design
from gradientdice.solvers.grid import Group, collect, hyper_parameters, run_groups
from gradientdice.solvers.initial import Init, UniformInit
from gradientdice.solvers.recorders import Recorder, ValueEstimate
from gradientdice.solvers.schedules import Schedule, as_schedule
from gradientdice.solvers.solution import Curve, Solution
from gradientdice.solvers.sources import LogSource, Source
from gradientdice.solvers.status import Status
from gradientdice.solvers.training import Plan

if TYPE_CHECKING:
    import optax

    from gradientdice.functions.mlp import MLP
    from gradientdice.solvers.neural.training import NeuralPlan
    from gradientdice.solvers.training import Outcome


@dataclass(frozen=True)
class PrimalDual:
    """Stochastic gradient descent-ascent with tables, linear features or networks, in float32.

    Attributes:
        steps: the number of updates.
        learning_rate: a number, `Constant`, `RobbinsMonro` or `Cosine`.
        batch_size: transitions an update.
        record_every: updates between two points of the learning curve; None is about a hundred points.
        init: where the weights of a table or of linear features start: `UniformInit` or `ConstantInit`.
        optimizer: for networks, any optax transformation with a learning rate of 1, which is multiplied by ours:
            `optax.sgd(1.0)`, which None stands for, `optax.adam(1.0)`, ….
        clip_norm: for networks, the largest norm of a gradient; None is no limit.
        average: for networks, the decay of an exponential average of the iterates, which then is the answer; 0 is none.
        target_rate: for networks, how fast a copy of the critic follows it that is asked at the next states; None is
            no copy, and the true gradient.

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
        if self.clip_norm is not None:
            require_number("clip_norm", self.clip_norm, low=0, open_low=True)
        require_number("average", self.average, low=0, high=0.9999999)
        if self.target_rate is not None:
            require_number("target_rate", self.target_rate, low=0, high=1, open_low=True)

    @property
    def _every(self) -> int:
        return min(self.record_every or max(1, self.steps // 100), self.steps)

    def neural_plan(self, estimator: Estimator, functions: MLP, *, with_ridge: bool) -> NeuralPlan:
        """The static part of a run with networks."""
        from gradientdice.solvers.neural.training import NeuralPlan

        return NeuralPlan(
            estimator,
            as_schedule(self.learning_rate),
            functions,
            self.steps,
            self.batch_size,
            self._every,
            _plain_steps() if self.optimizer is None else self.optimizer,
            self.clip_norm,
            self.average,
            self.target_rate,
            with_ridge,
        )

    def plan(self, estimator: Estimator, *, with_ridge: bool) -> Plan:
        """The static part of a run."""
        if self.optimizer is not None or self.clip_norm is not None or self.average or self.target_rate is not None:
            raise InputError(
                "optimizer, clip_norm, average and target_rate are for networks (functions=MLP(…)): a table or linear "
                "features take plain steps, ProjectedPrimalDual averages them, and ClosedForm needs none."
            )
        schedule = as_schedule(self.learning_rate)
        return Plan(estimator, schedule, self.steps, self.batch_size, self._every, self.init, with_ridge)

    def solve(self, estimator: Estimator, source: Source, recorder: Recorder, *, seed: int = 0) -> Solution:
        """One run."""
        plan = self.plan(estimator, with_ridge=estimator.ridge > 0)
        return solve_plan(plan, source, recorder, hyper_parameters([estimator], [plan.schedule]), seed)

    def solve_log(self, estimator: Estimator, design: Design, *, seed: int = 0) -> Solution:
        """One run on a log, recording the value estimate."""
        source, recorder = (
            LogSource.create(design, estimator.discount),
            ValueEstimate.create(design, estimator.discount),
        )
        return self.solve(estimator, source, recorder, seed=seed)


@cache
def _plain_steps() -> optax.GradientTransformation:
    """Always the same object: a program that was compiled for it serves again."""
    import optax

    return optax.sgd(1.0)


def solve_plan(plan: Plan, source: Source, recorder: Recorder, hyper: dict[str, np.ndarray], seed: int) -> Solution:
    """One run of a plan as a `Solution`."""
    group = Group(plan, source, recorder, hyper)
    return as_solution(plan, recorder, collect([group], [seed], run_groups([group], [seed]))[0])


def record_steps(plan: Plan) -> np.ndarray:
    """The steps after which a point of the curve was recorded."""
    steps = np.arange(plan.record_every, plan.steps + 1, plan.record_every)
    return steps if plan.steps % plan.record_every == 0 else np.append(steps, plan.steps)


def as_solution(plan: Plan, recorder: Recorder, outcome: Outcome, seed: int = 0, case: int = 0) -> Solution:
    """One run out of a grid's outcome."""
    diverged_at = int(outcome.diverged_at[seed, case])
    return Solution(
        ratio_params=outcome.state.ratio[seed, :, case].astype(np.float64),
        critic_params=outcome.state.critic[seed, :, case].astype(np.float64),
        norm_multiplier=float(outcome.state.norm_multiplier[seed, case]),
        status=Status.OK if diverged_at < 0 else Status.DIVERGED,
        stats={"steps": plan.steps, **({"diverged_at": diverged_at} if diverged_at >= 0 else {})},
        curve=Curve(record_steps(plan), outcome.curve[seed, :, case].astype(np.float64), recorder.name),
    )
