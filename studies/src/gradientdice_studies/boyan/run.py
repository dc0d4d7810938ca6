"""Runs the grid and writes its tables: one part for each compiled program, so that an interrupted run resumes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gradientdice.base.progress import working
from gradientdice.base.provenance import provenance
from gradientdice.dice.closed_form import solve
from gradientdice.dice.solution import Status
from gradientdice.dice.stochastic.functions import LinearClass, UniformInit
from gradientdice.dice.stochastic.learner import replay
from gradientdice.dice.stochastic.plan import Plan
from gradientdice.dice.stochastic.primal_dual import PrimalDual
from gradientdice.dice.stochastic.sources import MDPSource
from gradientdice.dice.stochastic.training import Outcome, run_groups
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.problem.moments import Moments
from gradientdice_studies.boyan.grid import (
    DATA_DIST,
    DISCOUNTS,
    REPRESENTATIONS,
    TARGET,
    Cell,
    Representation,
    Scale,
    cells,
    chain,
    features_of,
    true_ratio,
)
from gradientdice_studies.frames import groups
from gradientdice_studies.store import ResultStore

CLOSED_FORM_POINTS = 20


@dataclass(frozen=True)
class Tables:
    """The experiment's results.

    Attributes:
        runs: one row per run: its case, seed, final_error, status, and its curve as a list.
        closed_form: one row for each representation, discount, seed and number of samples.
        steps: the steps at which the curves were recorded.
    """

    runs: pd.DataFrame
    closed_form: pd.DataFrame
    steps: np.ndarray


def run(folder: Path, scale: Scale, *, force: bool = False) -> tuple[ResultStore, Tables]:
    """Runs what is not in the folder yet, and writes runs and closed_form as Parquet and CSV."""
    store = ResultStore(folder, "boyan", asdict(scale), force=force)
    todo = {cell: store.part(_file_name(cell)) for cell in cells(scale)}
    pending = [cell for cell, path in todo.items() if not path.exists()]
    programs, seeds = [cell.group for cell in pending], range(scale.runs)
    with working("Boyan's Chain", sum(program.size for program in programs)) as advance:
        for number, outcome in run_groups(programs, seeds):
            frame = _run_table(pending[number], outcome, seeds)
            store.write(todo[pending[number]], frame.to_parquet)
            advance(programs[number].size)
    closed_path = store.part("closed-form.parquet")
    if not closed_path.exists():
        store.write(closed_path, closed_form_table(scale).to_parquet)
    tables = Tables(
        pd.concat([pd.read_parquet(path) for path in todo.values()], ignore_index=True),
        pd.read_parquet(closed_path),
        _plan(scale).record_steps(),
    )
    details = provenance(seeds=list(seeds), scale=asdict(scale), grid="2 × 3 × 54 cases and three studies")
    for name, frame in (("runs", tables.runs), ("closed_form", tables.closed_form)):
        frame.attrs["provenance"] = details
        store.write(folder / f"{name}.parquet", frame.to_parquet)
        store.write(folder / f"{name}.csv", frame.drop(columns="curve", errors="ignore").to_csv)
    curves = mean_curves(tables)
    store.write(folder / "curves.parquet", curves.to_parquet)
    store.write(folder / "curves.csv", curves.to_csv)
    return store, tables


def mean_curves(tables: Tables) -> pd.DataFrame:
    """One row for each case and recorded step: the mean and standard deviation over the runs."""
    keys = ["study", "representation", "learner", "discount", "learning_rate", "ridge", "norm_penalty", "init"]
    frames = []
    for values, rows in groups(tables.runs, *keys):
        curves = stack_curves(rows)
        columns = dict(zip(keys, values, strict=True))
        frames.append(pd.DataFrame({**columns, "step": tables.steps, "mean": curves.mean(axis=0), "std": _std(curves)}))
    return pd.concat(frames, ignore_index=True)


def stack_curves(rows: pd.DataFrame) -> np.ndarray:
    """The curves of some runs, (runs, records)."""
    return np.stack(rows["curve"].to_list()).astype(np.float64)


def _std(curves: np.ndarray) -> np.ndarray:
    finite = np.isfinite(curves).all(axis=0)
    return np.where(finite, np.where(np.isfinite(curves), curves, 0.0).std(axis=0), np.inf)


def closed_form_table(scale: Scale) -> pd.DataFrame:
    """MSE(τ) of the closed form (ξ = 0) given the same samples as the learners, at growing numbers of them.

    The learners follow the paper and draw a' and a0; the closed form is given the same draws ("sampled"), or uses the
    policy's probabilities in their place ("expected"), as `evaluate` does on any log.
    """
    rows = []
    counts = np.unique(np.geomspace(max(100, scale.steps // 300), scale.steps, CLOSED_FORM_POINTS).astype(int))
    for representation in REPRESENTATIONS:
        for average in (False, True):
            source = MDPSource.create(chain(1.0 if average else 0.5), TARGET, DATA_DIST, features_of(representation))
            for seed in range(scale.runs):
                drawn = np.asarray(replay(_plan(scale), source, seed))
                discounts = (1.0,) if average else DISCOUNTS[:-1]
                rows += _closed_form_rows(representation, discounts, drawn, counts, seed)
    return pd.DataFrame(rows)


def _closed_form_rows(
    representation: Representation, discounts: Sequence[float], drawn: np.ndarray, counts: np.ndarray, seed: int
) -> list[dict[str, Any]]:
    features = features_of(representation)
    x = np.eye(26) if features is None else features
    rows = []
    for actions, expected in (("sampled", False), ("expected", True)):
        done, moments = 0, None
        for count in counts:
            part = _sample_moments(x, drawn[done:count], expected)
            moments, done = part if moments is None else moments + part, count
            for discount in discounts:
                solution = solve(GradientDICE(discount), moments)
                error = np.mean((x @ solution.ratio_params - true_ratio(discount)) ** 2)
                case = {"representation": representation, "discount": discount, "actions": actions, "seed": seed}
                rows.append({**case, "samples": int(count), "error": float(error), "status": str(solution.status)})
    return rows


def _sample_moments(x: np.ndarray, drawn: np.ndarray, expected: bool) -> Moments:
    """The moments of some drawn pairs; `expected` replaces the drawn a' and a0 by their known distribution."""
    current, following, initial = (x[drawn[:, column]] for column in range(3))
    if expected:
        at_state = np.einsum("sa,sak->sk", TARGET, x.reshape(13, 2, -1))
        following, initial = at_state[drawn[:, 1] // 2], at_state[drawn[:, 2] // 2]
    n = len(drawn)
    return Moments(
        gram=current.T @ current / n,
        next_gram=following.T @ current / n,
        mean=current.mean(axis=0),
        initial=initial.mean(axis=0),
        reward=np.zeros(x.shape[1]),
        weight=float(n),
        initial_weight=float(n),
    )


def _run_table(cell: Cell, outcome: Outcome, seeds: Sequence[int]) -> pd.DataFrame:
    described = pd.DataFrame([case.columns() for case in cell.cases])
    case, seed = (index.ravel() for index in np.indices((len(cell.cases), len(seeds))))
    table = described.iloc[case].reset_index(drop=True)
    diverged_at = outcome.diverged_at[case, seed]
    table["seed"] = np.asarray(seeds)[seed]
    table["status"] = np.where(diverged_at < 0, str(Status.OK), str(Status.DIVERGED))
    table["diverged_at"] = np.where(diverged_at < 0, np.nan, diverged_at)
    table["final_error"] = outcome.curve[case, seed, -1, 0].astype(np.float64)
    table["curve"] = list(outcome.curve[case, seed, :, 0])
    return table


def _plan(scale: Scale) -> Plan:
    """A plan with the draws of every case of the grid: they depend on steps, batch size and recording alone."""
    solver = PrimalDual(scale.steps, 0.1, 1, scale.record_every, UniformInit())
    return solver.plan(GradientDICE(0.5), LinearClass(26))


def _file_name(cell: Cell) -> str:
    kept = "".join(character if character.isalnum() else "-" for character in cell.name)
    return kept.strip("-").replace("³", "3").replace("τ", "tau") + ".parquet"
