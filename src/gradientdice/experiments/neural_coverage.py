"""How often the intervals of neural answers cover: cross-fitted doubly robust ones, on pendulum and Reacher."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gradientdice.data.transitions import Transitions
from gradientdice.estimators import GradientDICE
from gradientdice.experiments.continuous.environments import pendulum
from gradientdice.experiments.markdown import number, table
from gradientdice.experiments.parallel import fill_parts
from gradientdice.experiments.reacher import environment as reacher
from gradientdice.experiments.reacher.protocols import truth as reacher_truth
from gradientdice.experiments.store import ResultStore
from gradientdice.functions.mlp import MLP
from gradientdice.inference.intervals import NormalInterval, independent_shares, standard_error
from gradientdice.inference.neural import neural_doubly_robust
from gradientdice.policies import SamplingPolicy

if TYPE_CHECKING:
    import pandas as pd

CONFIDENCE = 0.95
DISCOUNTS = {"pendulum": 0.95, "reacher": 0.9}


@dataclass(frozen=True)
class Scale:
    """How large the logs are, how many are drawn, and how many episodes pendulum's truth takes."""

    pendulum_rows: int = 20_000
    reacher_rows: int = 10_000
    truth_episodes: int = 200_000
    logs: int = 100


QUICK = Scale(logs=2, truth_episodes=20_000)


def run(folder: Path, scale: Scale, *, force: bool = False) -> tuple[ResultStore, pd.DataFrame]:
    """Runs what is missing and gathers it in one table."""
    import pandas as pd

    settings = {name: value for name, value in asdict(scale).items() if name != "logs"}
    store = ResultStore(folder, "neural", settings, force=force)
    truths = {problem: store.part(f"truth-{problem}.json") for problem in DISCOUNTS}
    fill_parts(store, "truths", {path: (problem, scale) for problem, path in truths.items()}, truth)
    parts = {
        store.part(f"{problem}-{seed}.json"): (problem, seed, scale)
        for seed in range(scale.logs)
        for problem in DISCOUNTS
    }
    fill_parts(store, "logs", parts, answer)
    known = {problem: json.loads(path.read_text()) for problem, path in truths.items()}
    rows = [json.loads(path.read_text()) for path in parts]
    frame = pd.DataFrame([{**row, **known[row["problem"]]} for row in rows])
    store.write(folder / "neural.csv", frame.to_csv)
    return store, frame


def truth(problem: str, scale: Scale) -> dict[str, float]:
    """The target's value and its standard error, by Monte Carlo."""
    discount = DISCOUNTS[problem]
    if problem == "reacher":
        value, error = reacher_truth("corrected")[discount]
    else:
        known = pendulum()
        value, error = known.value(known.target, discount, scale.truth_episodes, np.random.default_rng(1))
    return {"truth": value, "truth_error": error}


def make_log(problem: str, seed: int, scale: Scale) -> Transitions:
    """The log of this number."""
    if problem == "reacher":
        return reacher.make_log(1000 + seed, scale.reacher_rows)
    return pendulum().log(scale.pendulum_rows, np.random.default_rng([3, seed]))


def answer(problem: str, seed: int, scale: Scale) -> dict[str, object]:
    """The default neural answer on one log."""
    return answer_on(problem, seed, make_log(problem, seed, scale))


def answer_on(problem: str, seed: int, data: Transitions) -> dict[str, object]:
    """The default neural answer on this log."""
    started = time.perf_counter()
    policy: SamplingPolicy = (
        reacher.noisy(reacher.Actor.load(), reacher.TARGET_NOISE) if problem == "reacher" else pendulum().target
    )
    result = neural_doubly_robust(data, policy, GradientDICE(DISCOUNTS[problem]), MLP(), seed=seed)
    samples = independent_shares(result.shares, data)
    low, high = NormalInterval().interval(result.value, samples, CONFIDENCE, seed)
    return {
        "problem": problem,
        "discount": DISCOUNTS[problem],
        "log": seed,
        "rows": len(data),
        "value": result.value,
        "standard_error": standard_error(samples),
        "low": low,
        "high": high,
        "logged_mean": float(data.rewards.mean()),
        "seconds": time.perf_counter() - started,
    }


def write_page(path: Path, frame: pd.DataFrame) -> None:
    """Writes the page."""
    rows = []
    for problem, group in frame.groupby("problem", sort=False):
        error = group["value"] - group["truth"]
        inside = (group["low"] <= group["truth"]) & (group["truth"] <= group["high"])
        first = group.iloc[0]
        rows.append(
            [
                problem,
                f"{first['discount']:g}",
                f"{first['rows']:,}",
                f"{first['truth']:.4g} ± {number(first['truth_error'], 1)}",
                f"{group['logged_mean'].mean():.4g}",
                number(error.mean()),
                number(error.std()),
                number(group["standard_error"].median()),
                f"{inside.sum()} of {len(group)}",
            ]
        )
    header = ["problem", "γ", "transitions", "truth", "logged mean", "mean error", "spread of the answers"]
    text = [
        "# Intervals of neural answers",
        "Written by `gradientdice reproduce neural`. Each log is answered by `evaluate(…, functions=MLP())` with nothing tuned: GradientDICE's ratio and a fitted Q, three networks of each "
        "kind in two folds, combined doubly robustly; 95% intervals from the influence values, clustered by episode.",
        table([*header, "median standard error", "truth inside"], rows),
        "Where the standard error is about the spread of the answers over the logs and the mean error is small beside it, the interval covers as often as it says. What is missing is bias of the networks, "
        "which influence values cannot see.",
    ]
    path.write_text("\n\n".join(text) + "\n")
