"""Coverage and width of intervals over a suite of known problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from gradientdice.base.errors import InputError
from gradientdice.base.provenance import provenance
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.evaluation.evaluate import evaluate
from gradientdice.functions.linear import LinearFeatures
from gradientdice.functions.tabular import Tabular
from gradientdice.log.transitions import Transitions
from gradientdice.policies import TabularPolicy
from gradientdice.problem.problem import Problem as Log
from gradientdice.statistics.intervals import (
    BootstrapInterval,
    EmpiricalLikelihood,
    IntervalMethod,
    NormalInterval,
    SkewInterval,
)
from gradientdice.statistics.shares import Samples
from gradientdice.statistics.small_samples import interval_shares
from gradientdice_studies.coverage.problems import Problem, problems
from gradientdice_studies.parallel import fill_parts
from gradientdice_studies.store import ResultStore

DISCOUNTS = (0.9, 0.99, 1.0)
SIZES = (300, 1_000, 3_000, 10_000)
CONFIDENCE = 0.95
# The whole answer, as `evaluate` gives it, with its verdict: the other methods are intervals of the sampling error.
WHOLE = "evaluate"
# The slower methods are measured where they could matter: on small logs.
METHODS: dict[str, tuple[IntervalMethod, int]] = {
    "default": (SkewInterval(), max(SIZES)),
    "normal": (NormalInterval(), max(SIZES)),
    "bootstrap": (BootstrapInterval(500), 1_000),
    "likelihood": (EmpiricalLikelihood(), 1_000),
}


@dataclass(frozen=True)
class Scale:
    """How many logs are drawn for each cell, and how many of them are answered by `evaluate`, with a verdict."""

    replications: int = 400
    verdicts: int = 40


FULL, QUICK = Scale(), Scale(replications=40, verdicts=10)


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
    paths = {store.part(cell.name): (cell, scale) for cell in cells()}
    fill_parts(store, "cells", paths, run_cell)
    table = pd.concat([pd.read_parquet(path) for path in paths], ignore_index=True)
    table.attrs["provenance"] = provenance(replications=scale.replications, confidence=CONFIDENCE)
    store.write(folder / "coverage.parquet", table.to_parquet)
    store.write(folder / "coverage.csv", table.to_csv)
    return store, table


def run_cell(cell: Cell, scale: Scale) -> pd.DataFrame:
    """One row per interval method: how many logs were answered, how often the truth was inside, how wide it was."""
    problem = problems()[cell.problem]()
    truth = problem.truth(cell.discount)
    methods = {name: method for name, (method, largest) in METHODS.items() if cell.rows <= largest}
    counts = {name: Count() for name in (*methods, WHOLE)}
    for replication in range(scale.replications):
        data = _log(problem, cell, replication)
        try:
            value, samples = _estimate(problem, cell, data)
        except InputError:
            for name in methods:
                counts[name].refused += 1  # a pair that the policy needs was never logged
        else:
            for name, method in methods.items():
                counts[name].add(value - truth, method.interval(value, samples, CONFIDENCE, replication), truth)
        if replication >= scale.verdicts:
            continue
        try:
            found = evaluate(data, _policy(problem), discount=cell.discount, functions=_functions(problem, cell))
        except InputError:
            counts[WHOLE].refused += 1  # wrong features that no row shows, or a log too small for anything
            continue
        assert found.interval is not None
        counts[WHOLE].add(found.value - truth, found.interval, truth, trusted=str(found.verdict) == "trust")
    return pd.DataFrame([{**asdict(cell), "method": name, **count.row()} for name, count in counts.items()])


@dataclass
class Count:
    """What came of one method's intervals."""

    errors: list[float] = field(default_factory=list)
    inside: list[bool] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    trusted: list[bool] = field(default_factory=list)
    refused: int = 0

    def add(self, error: float, interval: tuple[float, float], truth: float, *, trusted: bool = False) -> None:
        """One log's answer."""
        self.errors.append(error)
        self.inside.append(interval[0] <= truth <= interval[1])
        self.widths.append(interval[1] - interval[0])
        self.trusted.append(trusted)

    def row(self) -> dict[str, float]:
        """Its columns of the table."""
        answered = len(self.errors)
        inside, trusted = np.array(self.inside, dtype=bool), np.array(self.trusted, dtype=bool)
        return {
            "answered": answered,
            "refused": self.refused,
            "coverage": float(inside.mean()) if answered else np.nan,
            "width": float(np.median(self.widths)) if answered else np.nan,
            "rmse": float(np.sqrt(np.mean(np.square(self.errors)))) if answered else np.nan,
            "bias": float(np.mean(self.errors)) if answered else np.nan,
            "trusted": int(trusted.sum()),
            "trusted_inside": int(inside[trusted].sum()) if answered else 0,
        }


def _log(problem: Problem, cell: Cell, replication: int) -> Transitions:
    rng = np.random.default_rng([replication, cell.rows])
    return (
        problem.independent(cell.rows, rng) if cell.logging == "independent" else problem.trajectories(cell.rows, rng)
    )


def _policy(problem: Problem) -> TabularPolicy:
    return TabularPolicy(problem.target[: problem.terminal])


def _functions(problem: Problem, cell: Cell, *, stand_in: bool = True) -> Tabular | LinearFeatures:
    states, actions = problem.terminal, problem.mdp.num_actions
    if cell.features == "right":
        return Tabular(states, actions, stand_in=stand_in)
    return LinearFeatures(merged_features(states, actions))


def _estimate(problem: Problem, cell: Cell, data: Transitions) -> tuple[float, Samples]:
    # The coverage of logs with unlogged pairs would mix their bias with the sampling noise: such logs are refused.
    log = Log(data, _policy(problem), _functions(problem, cell, stand_in=False))
    answer = GradientDICE(cell.discount).answer(log)
    assert answer.influence is not None
    return answer.value, interval_shares(answer.influence, log)


def merged_features(states: int, actions: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Features that cannot distinguish neighbouring states, except by a common slope: wrong on purpose."""
    groups = (states + 1) // 2

    def features(s: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.column_stack([np.eye(groups * actions)[(s // 2) * actions + a], s / states])

    return features
