"""Reacher: the log, the paper's grid of runs, and our own answers; an interrupted run continues."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from gradientdice.evaluation.interval import Intervals
from gradientdice.log.formats.load import load
from gradientdice.log.transitions import Transitions
from gradientdice.policies import Policy
from gradientdice_studies.parallel import fill_parts
from gradientdice_studies.reacher.environment import LOG_ROWS, TARGET_NOISE, Actor, fingerprint, make_log, noisy
from gradientdice_studies.reacher.grid import SEEDS, run_grid
from gradientdice_studies.reacher.protocols import DISCOUNTS, truth, with_restarts
from gradientdice_studies.searched import searched_answers
from gradientdice_studies.store import ResultStore

# Of the log of seed 0 with 10⁵ transitions.
FINGERPRINT = "00b361cf1d390c6a"
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Scale:
    """The size of the log, the runs of each setting, and how many logs our own answer is measured on."""

    rows: int = LOG_ROWS
    seeds: int = SEEDS
    logs: int = 20


QUICK = Scale(rows=5_000, seeds=1, logs=2)


@dataclass(frozen=True, eq=False)
class Results:
    """The experiment's results.

    Attributes:
        grid: the curves of the paper's grid, and where runs diverged, by protocol (see `run_grid`).
        own: our own answers, one row per log and discount.
    """

    grid: dict[str, np.ndarray]
    own: pd.DataFrame


def run(folder: Path, scale: Scale, *, force: bool = False) -> tuple[ResultStore, Results]:
    """Makes what is missing: the log, the grid's curves, and our own answers on several logs."""
    # Logs may be added to those in the folder.
    settings = {name: value for name, value in asdict(scale).items() if name != "logs"}
    store = ResultStore(folder, "reacher", settings, force=force)
    path = store.part("log.npz")
    if not path.exists():
        store.write(path, lambda place: make_log(0, scale.rows).save(place))
    data = load(path)
    if scale.rows == LOG_ROWS and fingerprint(data) != FINGERPRINT:
        print(
            f"Note: the log's fingerprint is {fingerprint(data)}, not {FINGERPRINT}: this version of MuJoCo or "
            "Gymnasium simulates differently, and the numbers will differ a little."
        )
    own = _run_own(store, scale)
    curves = store.part("grid.npz")
    if not curves.exists():
        found = run_grid(data, scale.seeds)
        store.write(curves, lambda place: _save_arrays(place, found))
    with np.load(curves) as archive:
        grid = dict(archive)
    store.write(folder / "own.csv", own.to_csv)
    return store, Results(grid, own)


def _save_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    np.savez_compressed(path, **arrays)  # pyright: ignore[reportArgumentType] - it takes them for allow_pickle


def _run_own(store: ResultStore, scale: Scale) -> pd.DataFrame:
    """The default answer on logs of other seeds, one part per log."""
    parts = {store.part(f"own-{seed}.json"): (seed, scale.rows) for seed in range(scale.logs)}
    fill_parts(store, "logs for our own answer", parts, own_answers)
    table = pd.DataFrame([row for path in parts for row in json.loads(path.read_text())])
    known = [truth("corrected")[discount] for discount in table["discount"]]
    return table.assign(truth=[value for value, _ in known], truth_error=[error for _, error in known])


def own_answers(seed: int, rows: int) -> list[dict[str, object]]:
    """The default answer without tuning at every discount; at discount 1 under the corrected protocol."""
    data, policy = make_log(seed, rows), noisy(Actor.load(), TARGET_NOISE)
    below = tuple(discount for discount in DISCOUNTS if discount < 1)
    return [*_answers(data, policy, below, seed), *_answers(with_restarts(data), policy, (1.0,), seed)]


def _answers(data: Transitions, policy: Policy, discounts: tuple[float, ...], seed: int) -> list[dict[str, object]]:
    started = time.perf_counter()
    answers = searched_answers(data, policy, discounts, Intervals(confidence=CONFIDENCE), seed)
    spent = time.perf_counter() - started
    rows = []
    for discount, (search, estimate) in zip(discounts, answers, strict=True):
        low, high = estimate.interval or (None, None)
        rows.append(
            {
                "log": seed,
                "discount": discount,
                "value": estimate.value,
                "standard_error": estimate.standard_error,
                "low": low,
                "high": high,
                "features": repr(search.functions),
                "seconds": spent,
            }
        )
    return rows
