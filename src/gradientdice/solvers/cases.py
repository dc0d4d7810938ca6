"""Cases, that is estimators with solvers, and which of them share a compiled program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from gradientdice.estimators import Estimator
from gradientdice.solvers.grid import hyper_parameters, structure
from gradientdice.solvers.primal_dual import PrimalDual
from gradientdice.solvers.schedules import as_schedule
from gradientdice.solvers.training import Plan

Case = tuple[Estimator, PrimalDual]


def group_cases(cases: Sequence[Case], *, split_average: bool = False) -> list[tuple[Plan, list[int]]]:
    """The numbers of the cases that share a program; the average-reward ones apart if their data differ."""
    found: dict[Any, list[int]] = {}
    for number, (estimator, solver) in enumerate(cases):
        key = structure(solver.plan(estimator, with_ridge=False)), split_average and estimator.discount == 1
        found.setdefault(key, []).append(number)
    return [
        (replace(plan, with_ridge=any(cases[number][0].ridge > 0 for number in numbers)), numbers)
        for (plan, _), numbers in found.items()
    ]


def case_numbers(cases: Sequence[Case]) -> dict[str, np.ndarray]:
    """The hyper-parameter arrays of a group."""
    return hyper_parameters([e for e, _ in cases], [as_schedule(s.learning_rate) for _, s in cases])


def describe(estimator: Estimator, solver: PrimalDual) -> dict[str, Any]:
    """A case in plain words and numbers, one entry a column."""
    numbers = {f.name: getattr(estimator, f.name) for f in fields(estimator)}
    plain = {name: value if isinstance(value, (int, float)) else repr(value) for name, value in numbers.items()}
    schedule = as_schedule(solver.learning_rate)
    return {
        "estimator": type(estimator).__name__,
        **plain,
        "learning_rate": schedule.rate,
        "schedule": type(schedule).__name__,
        "steps": solver.steps,
        "batch_size": solver.batch_size,
        "init": repr(solver.init),
    }
