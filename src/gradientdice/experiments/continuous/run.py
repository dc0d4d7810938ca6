"""The default answer on control problems, log after log: its error, its interval, and what the choice cost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from gradientdice.experiments.continuous.environments import ENVIRONMENTS, Environment
from gradientdice.experiments.store import ResultStore
from gradientdice.inference.automatic import automatic
from gradientdice.inference.intervals import NormalInterval
from gradientdice.provenance import provenance
from gradientdice.solvers.progress import progress_bar

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
    """Runs what is missing; a part is one log of one problem, so that more replications add to fewer."""
    settings = {"rows": scale.rows, "truth_episodes": scale.truth_episodes}
    store = ResultStore(folder, "continuous", settings, force=force)
    # Replications come first, so that an interrupted run has some of every problem.
    parts = {
        (name, k): store.part(f"{name}-{k}.parquet") for k, name in product(range(scale.replications), ENVIRONMENTS)
    }
    with progress_bar("logs", len(parts)) as advance:
        for (name, replication), path in parts.items():
            if not path.exists():
                truth = _truth(store, name, scale)
                frame = pd.DataFrame(_rows(ENVIRONMENTS[name](), replication, scale, truth))
                store.write(path, frame.to_parquet)
            advance(1)
    table = pd.concat([pd.read_parquet(path) for path in parts.values()], ignore_index=True)
    table.attrs["provenance"] = provenance(scale=asdict(scale), confidence=CONFIDENCE)
    store.write(folder / "continuous.parquet", table.to_parquet)
    store.write(folder / "continuous.csv", table.to_csv)
    return store, table


def _truth(store: ResultStore, name: str, scale: Scale) -> pd.DataFrame:
    """The target's and the behaviour's values by Monte Carlo, kept beside the parts."""
    path = store.part(f"truth-{name}.parquet")
    if not path.exists():
        environment, rows = ENVIRONMENTS[name](), []
        for discount in DISCOUNTS:
            rng = np.random.default_rng([1, int(1000 * discount)])
            value, error = environment.value(environment.target, discount, scale.truth_episodes, rng)
            behavior, _ = environment.value(environment.behavior, discount, scale.truth_episodes // 10, rng)
            rows.append({"discount": discount, "truth": value, "truth_error": error, "behavior": behavior})
        store.write(path, pd.DataFrame(rows).to_parquet)
    return pd.read_parquet(path).set_index("discount")


def _rows(environment: Environment, replication: int, scale: Scale, truth: pd.DataFrame) -> Iterator[dict[str, object]]:
    data = environment.log(scale.rows, np.random.default_rng([2, replication]))
    for discount in DISCOUNTS:
        started = time.perf_counter()
        result = automatic(data, environment.target, discount, NormalInterval(), CONFIDENCE, replication)
        spent = time.perf_counter() - started
        known = truth.loc[discount]
        low, high = result.interval
        errors = [abs(candidate.answer.value - known["truth"]) for candidate in result.candidates]
        chosen = result.chosen
        yield {
            "problem": environment.name,
            "discount": discount,
            "replication": replication,
            "truth": known["truth"],
            "truth_error": known["truth_error"],
            "behavior": known["behavior"],
            "logged_mean": float(data.rewards.mean()),
            "value": chosen.answer.value,
            "standard_error": chosen.error,
            "low": low,
            "high": high,
            "inside": bool(low <= known["truth"] <= high),
            "error": abs(chosen.answer.value - known["truth"]),
            "best_error": min(errors),
            "features": repr(chosen.functions),
            "candidates": len(errors),
            "seconds": spent,
        }
