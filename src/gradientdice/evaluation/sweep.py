"""`sweep`: every estimator × function class × solver × seed on one log, as a long-format table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gradientdice.base.errors import InputError, require_count, require_flag, require_number
from gradientdice.base.progress import working
from gradientdice.base.provenance import provenance
from gradientdice.dice.saddle import SaddleObjective
from gradientdice.dice.solution import Status
from gradientdice.dice.stochastic.primal_dual import Case, PrimalDual, case_numbers, describe, group_cases
from gradientdice.dice.stochastic.setup import Setup, has_ends, has_scanned_ends, log_setup, scanned_setup
from gradientdice.dice.stochastic.training import Group, Outcome, collect, run_groups
from gradientdice.functions import Functions
from gradientdice.functions.mlp import MLP
from gradientdice.log.files.reading import as_path
from gradientdice.log.scanning.log import ScannedLog
from gradientdice.log.scanning.shuffled import ShuffledRows
from gradientdice.log.transitions import Transitions
from gradientdice.policies import Policy
from gradientdice.problem.entrance import explained_starts, require_functions, require_policy, require_types
from gradientdice.problem.problem import Problem
from gradientdice.statistics.checks import Verdict
from gradientdice.statistics.diagnostics import MEAN_ALARM, UNLOGGED_ALARM

# A list of more would take longer to write down than any sweep of them could run.
MOST_SEEDS = 10_000_000


def sweep(
    data: Transitions | ScannedLog,
    policy: Policy,
    estimators: SaddleObjective | Sequence[SaddleObjective],
    functions: Functions | Sequence[Functions],
    solver: PrimalDual | Sequence[PrimalDual],
    seeds: int | Sequence[int] = 30,
    *,
    progress: bool | None = None,
    max_bytes: int | None = None,
    checkpoint: str | Path | None = None,
) -> pd.DataFrame:
    """Trains every combination on a log and records its value estimates.

    Combinations that differ only in numbers (discount, norm_penalty, ridge, learning rate) and seeds run in
    one compiled program; runs of the same seed see the same transitions.

    Of a scanned log minibatches are read as they are used: each row comes once in an epoch, shuffled by row groups and
    within pools of some of them. Runs of different seeds see the same stretch of the log in different orders. The value
    and the mean ratio are those over `data.sample`.

    Args:
        data: the log, in memory or scanned.
        policy: the target policy.
        estimators: one or several; any object with `discount`, `ridge`, `ratio_minimises`, `ratio` and `objective`.
        functions: one or several function classes.
        solver: one or several `PrimalDual`.
        seeds: how many (0, 1, …), or which.
        progress: None shows a progress bar on a terminal once the work has taken two seconds, True from the start,
            False never.
        max_bytes: the memory that the programs may take; a larger grid runs in parts. None leaves it to the device.
        checkpoint: a folder to which the runs write as they go and from which they go on.

    Returns:
        A table with one row for each recorded point of each run: the combination, its seed, the step, the value
        estimate, the mean ratio, how the run ended, with a table the share of the policy's steps that the log does
        not contain, and a verdict: "do not trust" where the run diverged, the mean ratio is far from 1 or the log
        lacks too much, and "caution" elsewhere, since a curve has no interval and none of the other checks: for these
        give the solver to `evaluate`. `attrs["provenance"]` has versions, seeds and the grid.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = (
        ...     gd.mdp.boyan_chain("episodic"),
        ...     gd.TabularPolicy(np.tile([0.1, 0.9], (13, 1))),
        ... )
        >>> data = mdp.sample(2000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> table = gd.sweep(
        ...     data,
        ...     target,
        ...     [gd.GradientDICE(0.5), gd.GradientDICE(0.9)],
        ...     gd.Tabular(13, 2),
        ...     gd.PrimalDual(steps=100, learning_rate=0.1, record_every=50),
        ...     seeds=3,
        ... )
        >>> len(table)
        12
    """
    seed_list = _checked_seeds(seeds)
    if isinstance(data, ScannedLog):
        require_policy(policy)
    else:
        require_types(data, policy)
    if progress is not None:
        require_flag("progress", progress)
    if max_bytes is not None:
        require_count("max_bytes", max_bytes)
    cases: list[Case] = [(e, s) for e in _checked_estimators(estimators) for s in _checked_solvers(solver)]
    cells = []
    for position, function in enumerate(_as_list("functions", functions)):
        if function is None:
            raise InputError("functions must be one or several function classes, such as Tabular(…), not None.")
        require_functions(function)
        if isinstance(data, ScannedLog):
            cells += _cells(_scanned(data, policy, function), position, cases)
        else:
            with explained_starts(data, policy):
                cells += _cells(_in_memory(Problem(data, policy, function)), position, cases)
    groups = [cell.group for cell in cells]
    total = sum(group.size * len(seed_list) * sum(1 for _ in group.plan.blocks()) for group in groups)
    with working("training every combination", total, progress) as advance:

        def watch(blocks: int, figures: np.ndarray) -> None:
            advance(blocks, f"value {np.median(figures[:, 0]):.5g}")

        folder = None if checkpoint is None else as_path(checkpoint)
        outcomes = collect(run_groups(groups, seed_list, max_bytes=max_bytes, checkpoint=folder, watch=watch))
    tables = [_long_table(cell, outcome, seed_list) for cell, outcome in zip(cells, outcomes, strict=True)]
    table = pd.concat(tables, ignore_index=True)
    rows = sum(unit.rows for unit in ShuffledRows.of_scan(data).units) if isinstance(data, ScannedLog) else len(data)
    table.attrs["provenance"] = provenance(seeds=seed_list, grid=[describe(*case) for case in cases], rows=rows)
    return table


@dataclass(frozen=True, eq=False)
class _Cell:
    """Cases that run as one group, the columns that they have in common, and each case's unlogged share."""

    cases: list[Case]
    group: Group
    labels: dict[str, Any]
    unlogged: list[float | None]


@dataclass(frozen=True, eq=False)
class _Material:
    """A log with a function class, wherever it is.

    Attributes:
        functions: the function class.
        ends: whether the log at discount 1, where ended episodes restart, differs from that below 1.
        setup: what a learner takes at a discount.
        unlogged: the share of the policy's steps that the log does not contain, where it is known.
    """

    functions: Any
    ends: bool
    setup: Callable[[float], Setup]
    unlogged: Callable[[float], float | None]


def _in_memory(problem: Problem) -> _Material:
    return _Material(
        problem.functions, has_ends(problem), lambda discount: log_setup(problem, discount), problem.unlogged
    )


def _scanned(log: ScannedLog, policy: Policy, functions: Any) -> _Material:
    def setup(discount: float) -> Setup:
        return scanned_setup(log, policy, functions, discount)

    return _Material(functions, has_scanned_ends(log), setup, lambda discount: None)


def _cells(material: _Material, position: int, cases: Sequence[Case]) -> list[_Cell]:
    """One cell for each program that the cases need with these functions."""
    functions = material.functions
    name = repr(functions) if isinstance(functions, MLP) else type(functions).__name__
    lowest = min(estimator.discount for estimator, _ in cases)
    # At discount 1 a log with ends is another log: there they restart.
    separate = material.ends
    setups = {lowest: material.setup(lowest)}
    cells = []
    for plan, numbers in group_cases(cases, setups[lowest].functions, split_average=separate):
        chosen = [cases[number] for number in numbers]
        discount = min(estimator.discount for estimator, _ in chosen) if separate else lowest
        kind = lowest if discount < 1 else discount
        if kind not in setups:
            setups[kind] = material.setup(kind)
        _, source, recorder = setups[kind]
        group = Group(plan, source, recorder, case_numbers(chosen))
        labels = {"functions": name, "functions_number": position}
        cells.append(_Cell(chosen, group, labels, [material.unlogged(estimator.discount) for estimator, _ in chosen]))
    return cells


def _long_table(cell: _Cell, outcome: Outcome, seeds: Sequence[int]) -> pd.DataFrame:
    """One row for each case, seed and recorded step."""
    steps = cell.group.plan.record_steps()
    described = pd.DataFrame([{**cell.labels, **describe(*case)} for case in cell.cases])
    case, seed, step = (index.ravel() for index in np.indices((len(cell.cases), len(seeds), len(steps))))
    table = described.iloc[case].reset_index(drop=True)
    table["seed"], table["step"] = np.asarray(seeds)[seed], steps[step]
    for number, name in enumerate(cell.group.recorder.names):
        table[name] = outcome.curve[case, seed, step, number].astype(np.float64)
    diverged = outcome.diverged_at[case, seed] >= 0
    table["status"] = np.where(diverged, str(Status.DIVERGED), str(Status.OK))
    table["unlogged"] = np.asarray(cell.unlogged, dtype=np.float64)[case]
    table["verdict"] = _verdicts(table)
    return table


def _verdicts(table: pd.DataFrame) -> np.ndarray:
    """Caution at best for each row: its figures can show that a run failed, and not that the log covers the policy."""
    off = np.abs(table["mean_ratio"].to_numpy() - 1)
    failed = (table["status"] != str(Status.OK)).to_numpy() | ~(off <= MEAN_ALARM)
    # Without a table nobody knows the share, which is then NaN and says nothing.
    failed |= table["unlogged"].to_numpy() > UNLOGGED_ALARM
    return np.where(failed, str(Verdict.DO_NOT_TRUST), str(Verdict.CAUTION))


def _checked_seeds(seeds: Any) -> list[int]:
    if isinstance(seeds, (int, np.integer)):
        return list(range(require_count("seeds", seeds, high=MOST_SEEDS)))
    if not isinstance(seeds, (list, tuple, range, np.ndarray)) or (isinstance(seeds, np.ndarray) and seeds.ndim != 1):
        raise InputError(f"seeds must be a whole number or a list of them, not {seeds!r:.60}.")
    if not len(seeds):
        raise InputError("seeds must not be empty: a sweep needs at least one.")
    found = [require_count("seeds", seed, low=0) for seed in seeds]
    if len(set(found)) < len(found):
        raise InputError("seeds has one number twice, which would be the same run again.")
    return found


def _checked_estimators(estimators: Any) -> list[SaddleObjective]:
    found = _as_list("estimators", estimators)
    for estimator in found:
        if isinstance(estimator, type) or not isinstance(estimator, SaddleObjective):
            raise InputError(
                f"estimators must be saddle objectives such as GradientDICE(0.9), not {estimator!r:.60}: objects with "
                "discount, ridge, ratio_minimises, ratio(raw) and objective(terms)."
            )
        require_number("estimators: discount", estimator.discount, low=0, high=1)
        require_number("estimators: ridge", estimator.ridge, low=0)
    return found


def _checked_solvers(solver: Any) -> list[PrimalDual]:
    found = _as_list("solver", solver)
    for one in found:
        if not isinstance(one, PrimalDual):
            raise InputError(f"solver must be PrimalDual(…) or a list of them, not {one!r:.60}.")
        if one.checkpoint is not None:
            raise InputError("solver: a sweep takes one folder for all of its runs, as sweep(…, checkpoint=folder).")
    return found


def _as_list(name: str, value: Any) -> list[Any]:
    found = list(value) if isinstance(value, (list, tuple)) else [value]
    if not found:
        raise InputError(f"{name} must not be empty: a sweep needs at least one.")
    return found
