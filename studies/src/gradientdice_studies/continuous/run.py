"""The default answer on control problems, log by log: its error, its interval, and all candidates of its search."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from gradientdice.base.provenance import provenance
from gradientdice.evaluation.interval import Intervals
from gradientdice.problem.problem import Problem
from gradientdice.statistics.flow import flow_residuals
from gradientdice_studies.continuous.environments import ENVIRONMENTS
from gradientdice_studies.parallel import fill_parts
from gradientdice_studies.searched import searched_answers
from gradientdice_studies.store import ResultStore

DISCOUNTS = (0.9, 0.95, 0.99)
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Scale:
    """How large the logs are, how many are drawn, and how many episodes the truth takes."""

    rows: int = 100_000
    replications: int = 50
    truth_episodes: int = 200_000


QUICK = Scale(rows=10_000, replications=2, truth_episodes=20_000)


def run(folder: Path, scale: Scale, *, force: bool = False) -> tuple[ResultStore, pd.DataFrame]:
    """Runs what is missing and gathers it in one table: one row per log, discount and candidate."""
    store = ResultStore(folder, "continuous", _settings(scale), force=force)
    paths = run_parts(store, scale)
    table = pd.DataFrame([row for path in paths for row in json.loads(path.read_text())])
    table.attrs["provenance"] = provenance(scale=asdict(scale), confidence=CONFIDENCE)
    store.write(folder / "continuous.parquet", table.to_parquet)
    store.write(folder / "continuous.csv", table.to_csv)
    return store, table


def _settings(scale: Scale) -> dict[str, int]:
    return {"rows": scale.rows, "truth_episodes": scale.truth_episodes}


def run_parts(store: ResultStore, scale: Scale) -> list[Path]:
    """Computes the parts that are missing, in as many processes as there are cores.

    A part is one log of one problem, so that more replications add to fewer. Replications come first, so that an
    interrupted run has some of every problem.
    """
    truths = {name: store.part(f"truth-{name}.json") for name in ENVIRONMENTS}
    fill_parts(store, "truths", {path: (name, scale) for name, path in truths.items()}, _truth)
    truth = {name: json.loads(path.read_text()) for name, path in truths.items()}
    parts = {
        store.part(f"{name}-{k}.json"): (name, k, scale, truth[name])
        for k, name in product(range(scale.replications), ENVIRONMENTS)
    }
    fill_parts(store, "logs", parts, _rows)
    return list(parts)


def _truth(name: str, scale: Scale) -> list[dict[str, float]]:
    """The target's and the behaviour's values by Monte Carlo."""
    environment, rows = ENVIRONMENTS[name](), []
    for discount in DISCOUNTS:
        rng = np.random.default_rng([1, int(1000 * discount)])
        value, error = environment.value(environment.target, discount, scale.truth_episodes, rng)
        behavior, _ = environment.value(environment.behavior, discount, scale.truth_episodes // 10, rng)
        rows.append({"truth": value, "truth_error": error, "behavior": behavior})
    return rows


def _rows(name: str, replication: int, scale: Scale, truth: list[dict[str, float]]) -> list[dict[str, object]]:
    """One row per discount and candidate: its answer, its two losses, and whether it was chosen."""
    environment = ENVIRONMENTS[name]()
    data = environment.log(scale.rows, np.random.default_rng([2, replication]))
    started = time.perf_counter()
    answers = searched_answers(data, environment.target, DISCOUNTS, Intervals(confidence=CONFIDENCE), replication)
    spent = time.perf_counter() - started
    rows = []
    for discount, known, (result, estimate) in zip(DISCOUNTS, truth, answers, strict=True):
        low, high = estimate.interval or (None, None)
        ratios = [candidate.answer.ratio for candidate in result.candidates if candidate.answer.ratio is not None]
        flow = flow_residuals(Problem(data, environment.target, seed=replication), discount, ratios)
        for candidate, (residual, residual_noise) in zip(result.candidates, flow, strict=True):
            rows.append(
                {
                    "problem": name,
                    "discount": discount,
                    "replication": replication,
                    **known,
                    "logged_mean": float(data.rewards.mean()),
                    "features": repr(candidate.functions),
                    "chosen": candidate is result.chosen,
                    "ridge": candidate.ridge,
                    "value": candidate.answer.value,
                    "standard_error": candidate.error,
                    "loss": candidate.loss,
                    "noise": candidate.noise,
                    "flow_residual": residual,
                    "flow_noise": residual_noise,
                    "low": low,
                    "high": high,
                    "seconds": spent,
                }
            )
    return rows
