"""Coverage and width of intervals over a suite of known problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from gradientdice.errors import InputError
from gradientdice.estimators import GradientDICE
from gradientdice.experiments.coverage.problems import Problem, problems
from gradientdice.experiments.parallel import fill_parts
from gradientdice.experiments.store import ResultStore
from gradientdice.functions.linear import LinearFeatures
from gradientdice.functions.tabular import Tabular
from gradientdice.inference.intervals import (
    BootstrapInterval,
    EmpiricalLikelihood,
    IntervalMethod,
    NormalInterval,
    independent_shares,
)
from gradientdice.policies import TabularPolicy
from gradientdice.problem.problem import Problem as Log
from gradientdice.provenance import provenance

DISCOUNTS = (0.9, 0.99, 1.0)
SIZES = (300, 1_000, 3_000, 10_000)
CONFIDENCE = 0.95
# The slower methods are measured where they could matter: on small logs.
METHODS: dict[str, tuple[IntervalMethod, int]] = {
    "normal": (NormalInterval(), max(SIZES)),
    "bootstrap": (BootstrapInterval(500), 1_000),
    "likelihood": (EmpiricalLikelihood(), 1_000),
}


@dataclass(frozen=True)
class Scale:
    """How many logs are drawn for each cell."""

    replications: int = 1_000


FULL, QUICK = Scale(), Scale(replications=40)


@dataclass(frozen=True)
class Cell:
    """One cell of the table."""

    problem: str
    discount: float
    rows: int
    features: str
    logging: str

    @property
    def name(self) -> str:
        """A file name."""
        text = f"{self.problem}-{self.discount:g}-{self.rows}-{self.features}-{self.logging}"
        return "".join(character if character.isalnum() else "-" for character in text.replace("×", "x")) + ".parquet"


def cells() -> Iterator[Cell]:
    """The grid."""
    for cell in product(problems(), DISCOUNTS, SIZES, ("right", "misspecified"), ("independent", "trajectories")):
        yield Cell(*cell)


def run(folder: Path, scale: Scale, *, force: bool = False) -> tuple[ResultStore, pd.DataFrame]:
    """Runs what is missing, cell by cell on all cores, and writes the table: one row per cell and interval method."""
    store = ResultStore(folder, "coverage", asdict(scale), force=force)
    paths = {store.part(cell.name): (cell, scale.replications) for cell in cells()}
    fill_parts(store, "cells", paths, run_cell)
    table = pd.concat([pd.read_parquet(path) for path in paths], ignore_index=True)
    table.attrs["provenance"] = provenance(replications=scale.replications, confidence=CONFIDENCE)
    store.write(folder / "coverage.parquet", table.to_parquet)
    store.write(folder / "coverage.csv", table.to_csv)
    return store, table


def run_cell(cell: Cell, replications: int) -> pd.DataFrame:
    """One row per interval method: how many logs were answered, how often the truth was inside, how wide it was."""
    problem = problems()[cell.problem]()
    truth = problem.truth(cell.discount)
    methods = {name: method for name, (method, largest) in METHODS.items() if cell.rows <= largest}
    inside: dict[str, list[bool]] = {name: [] for name in methods}
    widths: dict[str, list[float]] = {name: [] for name in methods}
    errors, refused = [], 0
    for replication in range(replications):
        rng = np.random.default_rng([replication, cell.rows])
        try:
            value, samples = _estimate(problem, cell, rng)
        except InputError:
            refused += 1  # a pair that the policy needs was never logged
            continue
        errors.append(value - truth)
        for name, method in methods.items():
            low, high = method.interval(value, samples, CONFIDENCE, replication)
            inside[name].append(low <= truth <= high)
            widths[name].append(high - low)
    answered = len(errors)
    rows = []
    for name in methods:
        share = float(np.mean(inside[name])) if answered else np.nan
        rows.append(
            {
                **asdict(cell),
                "method": name,
                "answered": answered,
                "refused": refused,
                "coverage": share,
                "width": float(np.median(widths[name])) if answered else np.nan,
                "rmse": float(np.sqrt(np.mean(np.square(errors)))) if answered else np.nan,
                "bias": float(np.mean(errors)) if answered else np.nan,
            }
        )
    return pd.DataFrame(rows)


def _estimate(problem: Problem, cell: Cell, rng: np.random.Generator) -> tuple[float, list[np.ndarray]]:
    data = (
        problem.independent(cell.rows, rng) if cell.logging == "independent" else problem.trajectories(cell.rows, rng)
    )
    states, actions = problem.terminal, problem.mdp.num_actions
    # The coverage of logs with unlogged pairs would mix their bias with the sampling noise: such logs are refused.
    table = Tabular(states, actions, stand_in=False)
    functions = table if cell.features == "right" else LinearFeatures(merged_features(states, actions))
    answer = GradientDICE(cell.discount).answer(Log(data, TabularPolicy(problem.target[:states]), functions))
    assert answer.influence is not None
    return answer.value, independent_shares(answer.influence, data)


def merged_features(states: int, actions: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Features that cannot distinguish neighbouring states, except by a common slope: wrong on purpose."""
    groups = (states + 1) // 2

    def features(s: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.column_stack([np.eye(groups * actions)[(s // 2) * actions + a], s / states])

    return features
