"""Cases, that is estimators with solvers, and which of them share a compiled program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradientdice.dice.saddle import SaddleObjective
from gradientdice.dice.stochastic.binding import hyper_parameters, settings_of
from gradientdice.dice.stochastic.function_class import FunctionClass
from gradientdice.dice.stochastic.plan import Plan
from gradientdice.dice.stochastic.primal_dual import PrimalDual
from gradientdice.dice.stochastic.schedules import as_schedule

Case = tuple[SaddleObjective, PrimalDual]


def group_cases(
    cases: Sequence[Case], functions: FunctionClass, *, split_average: bool = False
) -> list[tuple[Plan, list[int]]]:
    """The numbers of the cases that share a program; the average-reward ones apart if their data differ."""
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
    """A case in plain words and numbers, one entry for each column."""
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
