"""`sweep`: every estimator × function class × solver × seed on one log, as a long-format table."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError, require_count
from gradientdice.estimators import Estimator
from gradientdice.functions.design import Design, Functions, whole_design
from gradientdice.functions.inputs import network_inputs
from gradientdice.functions.mlp import MLP
from gradientdice.policies import Policy
from gradientdice.provenance import provenance
from gradientdice.solvers.cases import Case, case_numbers, describe, group_cases
from gradientdice.solvers.grid import MAX_BYTES, Group, collect, run_groups, structure
from gradientdice.solvers.primal_dual import PrimalDual, record_steps
from gradientdice.solvers.progress import progress_bar
from gradientdice.solvers.recorders import ValueEstimate
from gradientdice.solvers.sources import LogSource
from gradientdice.solvers.status import Status
from gradientdice.solvers.training import Outcome, Plan


def sweep(
    data: Transitions,
    policy: Policy,
    estimators: Estimator | Sequence[Estimator],
    functions: Functions | MLP | Sequence[Functions | MLP],
    solver: PrimalDual | Sequence[PrimalDual],
    seeds: int | Sequence[int] = 30,
    *,
    progress: bool = True,
    max_bytes: int = MAX_BYTES,
    checkpoint: str | Path | None = None,
) -> pd.DataFrame:
    """Trains every combination on a log and records its value estimates.

    Combinations that differ only in numbers (discount, norm_penalty, ridge, learning rate) and seeds run in
    one compiled program; runs of the same seed see the same transitions.

    Args:
        data: the log.
        policy: the target policy.
        estimators: one or several.
        functions: one or several function classes.
        solver: one or several `PrimalDual`.
        seeds: how many (0, 1, …), or which.
        progress: whether to show a progress bar on a terminal.
        max_bytes: the memory that one program may take; a larger grid runs in parts.
        checkpoint: for networks, a folder to which the runs write as they go and from which they go on.

    Returns:
        A table with one row for each recorded point of each run: the combination, its seed, the step, the value
        estimate, and how the run ended. `attrs["provenance"]` has versions, seeds and the grid.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("episodic"), gd.TabularPolicy(np.tile([0.1, 0.9], (13, 1)))
        >>> data = mdp.sample(2000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> table = gd.sweep(data, target, [gd.GradientDICE(0.5), gd.GradientDICE(0.9)], gd.Tabular(13, 2),
        ...                  gd.PrimalDual(steps=100, learning_rate=0.1, record_every=50), seeds=3)
        >>> len(table)
        12
    """
    seed_list = list(range(require_count("seeds", seeds))) if isinstance(seeds, int) else [int(s) for s in seeds]
    cases: list[Case] = [(e, s) for e in _as_list(estimators) for s in _as_list(solver)]
    if not cases or not seed_list or not _as_list(functions):
        raise InputError("A sweep needs at least one estimator, one function class, one solver and one seed.")
    groups, members, labels, networks = [], [], [], []
    for position, function in enumerate(_as_list(functions)):
        if isinstance(function, MLP):
            label = {"functions": repr(function), "functions_number": position}
            folder = None if checkpoint is None else Path(checkpoint) / f"functions{position}"
            networks.append(_neural_table(data, policy, function, cases, seed_list, label, progress, max_bytes, folder))
            continue
        design = whole_design(data, policy, function, np.random.default_rng(0))
        for plan, numbers in group_cases(cases, split_average=design.absorbing):
            chosen = [cases[number] for number in numbers]
            groups.append(_log_group(plan, chosen, design))
            members.append(chosen)
            labels.append({"functions": type(function).__name__, "functions_number": position})
    total = sum(group.size for group in groups) * len(seed_list)
    with progress_bar("runs", total) if progress and groups else nullcontext() as bar:
        outcomes = collect(groups, seed_list, _watched(run_groups(groups, seed_list, max_bytes=max_bytes), bar))
    tables = [
        long_table(group.plan, chosen, outcome, seed_list, label, group.recorder.name)
        for group, chosen, outcome, label in zip(groups, members, outcomes, labels, strict=True)
    ]
    table = pd.concat([*tables, *networks], ignore_index=True)
    table.attrs["provenance"] = provenance(seeds=seed_list, grid=[describe(*case) for case in cases], rows=len(data))
    return table


def long_table(
    plan: Plan, cases: Sequence[Case], outcome: Outcome, seeds: Sequence[int], labels: dict[str, Any], name: str
) -> pd.DataFrame:
    """One row for each case, seed and recorded step."""
    steps = record_steps(plan)
    described = pd.DataFrame([{**labels, **describe(*case)} for case in cases])
    case, seed, step = (index.ravel() for index in np.indices((len(cases), len(seeds), len(steps))))
    table = described.iloc[case].reset_index(drop=True)
    diverged_at = outcome.diverged_at[seed, case]
    table["seed"] = np.asarray(seeds)[seed]
    table["step"] = steps[step]
    table[name] = outcome.curve[seed, step, case].astype(np.float64)
    table["status"] = np.where(diverged_at < 0, str(Status.OK), str(Status.DIVERGED))
    return table


def _neural_table(
    data: Transitions,
    policy: Policy,
    functions: MLP,
    cases: Sequence[Case],
    seeds: Sequence[int],
    label: dict[str, Any],
    progress: bool,
    max_bytes: int,
    checkpoint: Path | None,
) -> pd.DataFrame:
    """The runs of networks: as `long_table`, with the mean ratio beside the value."""
    from gradientdice.solvers.neural.grid import NeuralGroup, record_steps, run_neural
    from gradientdice.solvers.neural.training import NeuralData

    inputs = network_inputs(data, policy, functions.draws, np.random.default_rng(0))
    found: dict[Any, list[int]] = {}
    for number, (estimator, solver) in enumerate(cases):
        plan = solver.neural_plan(estimator, functions, with_ridge=any(e.ridge > 0 for e, _ in cases))
        # At discount 1 a log with ends is another log: they restart.
        found.setdefault((structure(plan), inputs.absorbing and estimator.discount == 1), []).append(number)
    groups = []
    for (plan, _), numbers in found.items():
        chosen = [cases[number] for number in numbers]
        lowest = min(estimator.discount for estimator, _ in chosen)
        groups.append(NeuralGroup(plan, NeuralData.create(inputs, lowest), case_numbers(chosen)))
    total = sum(group.size * len(seeds) * (len(record_steps(group.plan)) - 1) for group in groups)
    with progress_bar("networks", total, "ρ̂") if progress else nullcontext() as bar:

        def watch(blocks: int, values: np.ndarray) -> None:
            if bar is not None:
                bar(blocks, f"{np.median(values):.5g}")

        outcomes = run_neural(groups, seeds, max_bytes=max_bytes, checkpoint=checkpoint, watch=watch)
    tables = []
    for group, numbers, outcome in zip(groups, found.values(), outcomes, strict=True):
        steps = record_steps(group.plan)
        case, seed, step = (index.ravel() for index in np.indices((group.size, len(seeds), len(steps))))
        described = pd.DataFrame([{**label, **describe(*cases[number])} for number in numbers])
        table = described.iloc[case].reset_index(drop=True)
        table["seed"], table["step"] = np.asarray(seeds)[seed], steps[step]
        table["value"], table["mean_ratio"] = outcome.curve[case, seed, step].T.astype(np.float64)
        diverged = outcome.diverged_at[case, seed] >= 0
        table["status"] = np.where(diverged, str(Status.DIVERGED), str(Status.OK))
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _log_group(plan: Plan, cases: Sequence[Case], design: Design) -> Group:
    discount = max(estimator.discount for estimator, _ in cases)
    lowest = min(estimator.discount for estimator, _ in cases)
    source = LogSource.create(design, lowest if not design.absorbing else discount)
    return Group(plan, source, ValueEstimate.create(design, discount), case_numbers(cases))


def _watched(parts, bar):  # noqa: ANN001, ANN202 - an iterator passed through
    for part in parts:
        if bar is not None:
            bar((part[1].stop - part[1].start) * (part[2].stop - part[2].start))
        yield part


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
