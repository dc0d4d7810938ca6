"""Every estimator on every benchmark, at several sizes and overlaps: values, intervals, times, and compare's choice."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gradientdice.base.errors import InputError
from gradientdice.base.provenance import provenance
from gradientdice.dice.stochastic.primal_dual import PrimalDual
from gradientdice.estimators.minimax.lagrangian import RegularizedLagrangian
from gradientdice.estimators.needs import require_discount
from gradientdice.estimators.saddle.dual_dice import DualDICE
from gradientdice.estimators.saddle.gen_dice import GenDICE
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.evaluation.compare import compare
from gradientdice.evaluation.evaluate import evaluate
from gradientdice.evaluation.registry import ESTIMATORS
from gradientdice.functions.tabular import Tabular
from gradientdice.log.transitions import Transitions
from gradientdice_studies.parallel import fill_parts
from gradientdice_studies.shootout.control import CONTROL
from gradientdice_studies.shootout.problems import TABULAR, Problem
from gradientdice_studies.store import ResultStore

PROBLEMS = {**TABULAR, **CONTROL}
# Those that take longest come last.
ORDER = sorted(PROBLEMS, key=lambda name: name in ("taxi", "page-rank"))
OWN, CROSS_FITTED = "GradientDICE", "cross-fitted"
GEN, DUAL = "GenDICE", "DualDICE, p = 1.5"
# One setting for all benchmarks with features: nothing is tuned on the truth.
LEARNED = PrimalDual(10_000, learning_rate=0.1, batch_size=32)


@dataclass(frozen=True)
class Scale:
    """How many logs there are per cell, how many of a problem's sizes are used, and how much overlap there is.

    Taxi and PageRank, whose logs take longest, may have fewer.
    """

    seeds: int = 12
    large_seeds: int = 5
    sizes: int = 3
    overlaps: tuple[float, ...] = (0.0, 0.4, 0.8)


QUICK = Scale(seeds=2, large_seeds=2, sizes=1, overlaps=(0.0, 0.8))


@dataclass(frozen=True)
class Cell:
    """One log's place in the grid."""

    problem: str
    discount: float
    rows: int
    overlap: float
    seed: int

    @property
    def name(self) -> str:
        """A file name."""
        return f"{self.problem}-{self.discount:g}-{self.rows}-{self.overlap:g}-{self.seed}.json"


def cells(scale: Scale) -> Iterator[Cell]:
    """The grid; seeds come first within a problem, so that an interrupted run has some of everything there."""
    for name in ORDER:
        problem = PROBLEMS[name]()
        for seed in range(scale.large_seeds if problem.large else scale.seeds):
            for discount in problem.discounts:
                for rows in problem.sizes[: scale.sizes]:
                    for overlap in scale.overlaps:
                        yield Cell(name, discount, rows, overlap, seed)


def run(folder: Path, scale: Scale, *, force: bool = False) -> tuple[ResultStore, pd.DataFrame]:
    """Runs what is missing and gathers it in one table: one row per log and estimator."""
    settings = {"sizes": scale.sizes, "overlaps": list(scale.overlaps)}
    store = ResultStore(folder, "shootout", settings, force=force)
    truths = {name: store.part(f"truth-{name}.json") for name in PROBLEMS}
    fill_parts(store, "truths", {path: (name,) for name, path in truths.items()}, truth)
    grid = list(cells(scale))
    parts = {store.part(cell.name): (cell,) for cell in grid}
    fill_parts(store, "logs", parts, answers)
    # On the two large tables they would repeat GradientDICE's number, and take long.
    large = {name for name, problem in PROBLEMS.items() if problem().large}
    more = {store.part(f"saddle-{cell.name}"): (cell,) for cell in grid if cell.problem not in large}
    fill_parts(store, "saddle points", more, saddle_points)
    known = {name: json.loads(path.read_text()) for name, path in truths.items()}
    rows = [row for path in (*parts, *more) for row in json.loads(path.read_text())]
    frame = pd.DataFrame(rows)
    exact = [known[row["problem"]][f"{row['discount']:g}"] for row in rows]
    frame["truth"], frame["truth_error"] = [value for value, _ in exact], [error for _, error in exact]
    frame.attrs["provenance"] = provenance(scale=asdict(scale))
    store.write(folder / "shootout.parquet", frame.to_parquet)
    return store, frame


def truth(name: str) -> dict[str, tuple[float, float]]:
    """Discount -> the target's value and its standard error."""
    problem = PROBLEMS[name]()
    return {f"{discount:g}": problem.truth(discount) for discount in problem.discounts}


def estimators(problem: Problem, discount: float) -> dict[str, Any]:
    """Name -> estimator, with their defaults; those of `saddle_points` are left out."""
    found: dict[str, Any] = {OWN: GradientDICE(discount), "DualDICE, χ²": DualDICE(discount, power=2.0)}
    found |= {kind.__name__: kind(discount) for kind in ESTIMATORS.values() if not kind.takes_solver}
    if problem.tabular:
        found["BestDICE"] = RegularizedLagrangian.best_dice(discount)
    return found


def answers(cell: Cell) -> list[dict[str, Any]]:
    """One row per estimator."""
    problem, data = _log(cell)
    names = estimators(problem, cell.discount)
    by_text = {repr(estimator): name for name, estimator in names.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a bad fit overflows shows in its answer
        table = compare(data, problem.policy, list(names.values()), functions=problem.functions, seed=cell.seed)
    rows = []
    for row in table.to_dict("records"):
        name = by_text.get(row["estimator"], CROSS_FITTED)
        kept = {key: _plain(row[key]) for key in ("value", "low", "high", "verdict", "seconds", "note")}
        rows.append({**asdict(cell), "estimator": name, **kept, "chosen": row["choice"] != ""})
    return rows


def saddle_points(cell: Cell) -> list[dict[str, Any]]:
    """GenDICE and DualDICE as published: exact with a table, learned with features, where they have no closed form."""
    problem, data = _log(cell)
    solver = None if isinstance(problem.functions, Tabular) else LEARNED
    rows = []
    for name, estimator in {GEN: GenDICE(cell.discount), DUAL: DualDICE(cell.discount)}.items():
        row = dict.fromkeys(("value", "low", "high")) | {"verdict": "", "seconds": 0.0, "note": ""}
        started = time.perf_counter()
        try:
            require_discount(estimator)  # a stochastic solver would learn what says nothing
            found = evaluate(
                data, problem.policy, estimator, functions=problem.functions, solver=solver, seed=cell.seed
            )
            low, high = found.interval or (None, None)
            row |= {"value": _plain(found.value), "low": low, "high": high, "verdict": str(found.verdict)}
            row["seconds"] = time.perf_counter() - started
        except InputError as error:
            row["note"] = f"not applicable: {error}"
        rows.append({**asdict(cell), "estimator": name, **row, "chosen": False})
    return rows


def _log(cell: Cell) -> tuple[Problem, Transitions]:
    problem = PROBLEMS[cell.problem]()
    return problem, problem.log(cell.rows, cell.overlap, np.random.default_rng([7, cell.seed, cell.rows]))


def _plain(value: Any) -> Any:
    """None for what pandas made a NaN."""
    return None if isinstance(value, float) and not np.isfinite(value) else value
