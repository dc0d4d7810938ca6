"""The paper's stochastic learner: simultaneous gradient steps, descent for one player and ascent for the other.

`PrimalDual` is the solver; below it are trained runs as `Solution`s and `Fit`s, and many cases (estimators with
solvers) as groups that share a compiled program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import InputError, require_count, require_number
from gradientdice.base.progress import working
from gradientdice.dice.optimality import DRIFT_ALARM, UNSOLVED_ALARM, drift, unsolved_share
from gradientdice.dice.saddle import SaddleObjective
from gradientdice.dice.solution import Curve, Fit, Solution, Status
from gradientdice.dice.stochastic.functions import FunctionClass, Init, LinearClass, UniformInit, predict, require_init
from gradientdice.dice.stochastic.plan import (
    ExponentialAverage,
    Plan,
    Schedule,
    as_schedule,
    hyper_parameters,
    settings_of,
)
from gradientdice.dice.stochastic.setup import Recorder, Setup, log_setup
from gradientdice.dice.stochastic.sources import RowSource
from gradientdice.dice.stochastic.training import Group, Outcome, collect, run_groups
from gradientdice.functions.mlp import MLP
from gradientdice.log.files.reading import as_path
from gradientdice.problem.problem import Problem

if TYPE_CHECKING:
    import optax


NO_INTERVAL = "a stochastic solver gives no influence values, so there is no interval"


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
        """The static part of a run with this solver."""
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
        """A group of one estimator with this solver, on anything that a learner takes."""
        plan = self.plan(estimator, setup.functions)
        return Group(plan, setup.source, setup.recorder, hyper_parameters([estimator], [plan.schedule]))

    def solve(self, estimator: SaddleObjective, source: RowSource, recorder: Recorder, *, seed: int = 0) -> Solution:
        """Train one run with linear functions on any source of feature rows."""
        group = self.group(estimator, Setup(LinearClass(source.num_features), source, recorder))
        return as_solution(group, train(group, [seed], self.checkpoint))

    def fit(self, estimator: SaddleObjective, problem: Problem) -> Fit:
        """Train one run on a problem, recording the value estimate."""
        group = self.group(estimator, log_setup(problem, estimator.discount))
        outcome = train(group, [problem.seed], self.checkpoint, progress=problem.progress)
        return learned_fit(estimator, problem, group, outcome)


def block_length(steps: int, record_every: int | None) -> int:
    """The number of updates between two points of the learning curve; about a hundred points unless it is given."""
    return min(record_every or max(1, steps // 100), steps)


def train(
    group: Group, seeds: Sequence[int], checkpoint: Path | None = None, *, progress: bool | None = None
) -> Outcome:
    """Train all seeds of one group."""
    return train_groups([group], seeds, checkpoint, progress=progress)[0]


def train_groups(
    groups: Sequence[Group], seeds: Sequence[int], checkpoint: Path | None = None, *, progress: bool | None = None
) -> list[Outcome]:
    """Train all seeds of some groups."""
    total = sum(group.size * len(seeds) * sum(1 for _ in group.plan.blocks()) for group in groups)
    with working("training ratios", total, progress) as advance:
        figure = groups[0].recorder.names[0]

        def watch(blocks: int, figures: np.ndarray) -> None:
            advance(blocks, f"{figure} {np.median(figures[:, 0]):.5g}")

        folder = None if checkpoint is None else Path(checkpoint)
        return collect(run_groups(groups, seeds, checkpoint=folder, watch=watch))


def as_solution(group: Group, outcome: Outcome, case: int = 0, seed: int = 0) -> Solution:
    """One run's solution; the parameters of networks are flattened, layer after layer."""
    plan, names = group.plan, group.recorder.names
    players = jax.tree.map(lambda array: array[case, seed], outcome.players)
    diverged_at, curve = int(outcome.diverged_at[case, seed]), outcome.curve[case, seed].astype(np.float64)
    stats: dict[str, float] = {"steps": plan.steps}
    if "mean_ratio" in names and plan.functions.records_start:
        ratios = curve[:, names.index("mean_ratio")]
        stats |= {"first_mean_ratio": float(ratios[0]), "last_mean_ratio": float(ratios[-1])}
    if diverged_at >= 0:
        stats["diverged_at"] = diverged_at
    return Solution(
        ratio_params=_flat(players.ratio),
        critic_params=_flat(players.critic),
        norm_multiplier=float(players.norm_multiplier),
        status=Status.OK if diverged_at < 0 else Status.DIVERGED,
        stats=stats,
        curve=Curve(plan.record_steps(), curve[:, 0], names[0]),
    )


def linear_fit(estimator: SaddleObjective, problem: Problem, solution: Solution) -> Fit:
    """The value and the ratio of learned parameters with linear functions."""
    design, n = problem.design, len(problem.data)
    ratio = np.asarray(estimator.ratio(design.current.predict(solution.ratio_params[:, None])[:, 0]))
    # At discount 1 the absorbing state's own row, the last, is not part of the problem.
    keep = slice(0, n) if estimator.discount == 1 else slice(None)
    value, mean_ratio = (
        float(np.average(column[keep], weights=design.weights[keep])) for column in (ratio * design.rewards, ratio)
    )
    own = problem.row_share(estimator.discount) * ratio[:n]
    unsolved = unsolved_share(estimator, problem.moments, solution.ratio_params)
    solution = judged(solution, problem.data.rewards, unsolved)
    return Fit(value, mean_ratio, solution, own, note=f"{NO_INTERVAL}; the closed form gives one")


def network_fit(estimator: SaddleObjective, problem: Problem, group: Group, outcome: Outcome) -> Fit:
    """The value and the ratio of a trained network."""
    layers = jax.tree.map(lambda array: array[0, 0], outcome.players.ratio)
    ratio = np.asarray(estimator.ratio(predict(layers, problem.inputs.current[: len(problem.data)])))
    value, mean_ratio = (float(figure) for figure in outcome.curve[0, 0, -1])
    own = problem.row_share(estimator.discount) * ratio
    solution = judged(as_solution(group, outcome), problem.data.rewards, None)
    return Fit(value, mean_ratio, solution, own, note=f"{NO_INTERVAL}; without a solver there is one")


def learned_fit(estimator: SaddleObjective, problem: Problem, group: Group, outcome: Outcome) -> Fit:
    """One trained run on a problem, as its function class reads it."""
    if isinstance(problem.functions, MLP):
        return network_fit(estimator, problem, group, outcome)
    return linear_fit(estimator, problem, as_solution(group, outcome))


def judged(solution: Solution, rewards: Float[np.ndarray, " n"], unsolved: float | None) -> Solution:
    """The solution with its distance from the end: exactly where that is known, else by the value's drift."""
    moved = None if solution.curve is None or unsolved is not None else drift(solution.curve, rewards)
    found = {"unsolved_share": unsolved, "drift": moved}
    stats = solution.stats | {name: figure for name, figure in found.items() if figure is not None}
    unfinished = (unsolved or 0.0) > UNSOLVED_ALARM or (moved or 0.0) > DRIFT_ALARM
    status = Status.NOT_CONVERGED if solution.status.ok and unfinished else solution.status
    return replace(solution, stats=stats, status=status)


def _flat(params: Any) -> np.ndarray:
    return np.concatenate([np.asarray(leaf, dtype=np.float64).ravel() for leaf in jax.tree.leaves(params)])


Case = tuple[SaddleObjective, PrimalDual]


def group_cases(
    cases: Sequence[Case], functions: FunctionClass, *, split_average: bool = False
) -> list[tuple[Plan, list[int]]]:
    """Plans with the numbers of the cases that share each; average-reward cases apart if their data differ."""
    found: dict[Any, tuple[Plan, list[int]]] = {}
    for number, (estimator, solver) in enumerate(cases):
        plan = solver.plan(estimator, functions).ridged(False)
        key = plan.key(), split_average and estimator.discount == 1
        found.setdefault(key, (plan, []))[1].append(number)
    return [(plan.ridged(any(cases[n][0].ridge > 0 for n in numbers)), numbers) for plan, numbers in found.values()]


def case_numbers(cases: Sequence[Case]) -> dict[str, np.ndarray]:
    """The hyper-parameter arrays of a group."""
    return hyper_parameters([e for e, _ in cases], [as_schedule(s.learning_rate) for _, s in cases])


def describe(estimator: SaddleObjective, solver: PrimalDual) -> dict[str, Any]:
    """Describe a case in plain words and numbers, one entry for each column."""
    numbers = settings_of(estimator)
    numbers = {**numbers, "discount": estimator.discount, "ridge": estimator.ridge}
    schedule = as_schedule(solver.learning_rate)
    return {
        "estimator": type(estimator).__name__,
        **{name: _plain(value) for name, value in numbers.items() if not name.startswith("_")},
        "learning_rate": schedule.rate,
        "schedule": type(schedule).__name__,
        "steps": solver.steps,
        "batch_size": solver.batch_size,
        "init": repr(solver.init),
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float)) else repr(value)
