"""Trained runs as `Solution`s and `Fit`s."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from gradientdice.base.progress import working
from gradientdice.dice.saddle import SaddleObjective
from gradientdice.dice.solution import Curve, Fit, Solution
from gradientdice.dice.status import Status
from gradientdice.dice.stochastic.convergence import DRIFT_ALARM, UNSOLVED_ALARM, drift, unsolved_share
from gradientdice.dice.stochastic.grid import collect, run_groups
from gradientdice.dice.stochastic.network import predict
from gradientdice.dice.stochastic.parts import Group
from gradientdice.dice.stochastic.training import Outcome
from gradientdice.functions.mlp import MLP
from gradientdice.problem.problem import Problem

NO_INTERVAL = "a stochastic solver gives no influence values, so there is no interval"


def train(
    group: Group, seeds: Sequence[int], checkpoint: Path | None = None, *, progress: bool | None = None
) -> Outcome:
    """All seeds of one group."""
    return train_groups([group], seeds, checkpoint, progress=progress)[0]


def train_groups(
    groups: Sequence[Group], seeds: Sequence[int], checkpoint: Path | None = None, *, progress: bool | None = None
) -> list[Outcome]:
    """All seeds of some groups."""
    total = sum(group.size * len(seeds) * sum(1 for _ in group.plan.blocks()) for group in groups)
    with working("training ratios", total, progress) as advance:
        figure = groups[0].recorder.names[0]

        def watch(blocks: int, figures: np.ndarray) -> None:
            advance(blocks, f"{figure} {np.median(figures[:, 0]):.5g}")

        folder = None if checkpoint is None else Path(checkpoint)
        return collect(run_groups(groups, seeds, checkpoint=folder, watch=watch))


def as_solution(group: Group, outcome: Outcome, case: int = 0, seed: int = 0) -> Solution:
    """One run; the parameters of networks are flattened, layer after layer."""
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
    """The solution with how far it was from its end: exactly where that is known, else by the value's drift."""
    moved = None if solution.curve is None or unsolved is not None else drift(solution.curve, rewards)
    found = {"unsolved_share": unsolved, "drift": moved}
    stats = solution.stats | {name: figure for name, figure in found.items() if figure is not None}
    unfinished = (unsolved or 0.0) > UNSOLVED_ALARM or (moved or 0.0) > DRIFT_ALARM
    status = Status.NOT_CONVERGED if solution.status.ok and unfinished else solution.status
    return replace(solution, stats=stats, status=status)


def _flat(params: Any) -> np.ndarray:
    return np.concatenate([np.asarray(leaf, dtype=np.float64).ravel() for leaf in jax.tree.leaves(params)])
