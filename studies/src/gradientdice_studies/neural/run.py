"""Logs of pendulum and Reacher, each evaluated by cross-fitted, doubly robust networks."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.evaluation.evaluate import evaluate
from gradientdice.functions.mlp import MLP
from gradientdice.log.transitions import Transitions
from gradientdice.policies import Policy
from gradientdice_studies.continuous.environments import pendulum
from gradientdice_studies.parallel import fill_parts
from gradientdice_studies.reacher import environment as reacher
from gradientdice_studies.reacher.protocols import truth as reacher_truth
from gradientdice_studies.store import ResultStore

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
    """Runs what is missing and gathers it in one table, one row per log."""
    # More logs may be added to those in the folder.
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


def answer(problem: str, seed: int, scale: Scale) -> dict[str, object]:
    """The default neural answer on the log of this seed."""
    data = make_log(problem, seed, scale)
    started = time.perf_counter()
    estimator, functions = GradientDICE(discount=DISCOUNTS[problem]), MLP()
    estimate = evaluate(data, _target(problem), estimator, functions=functions, confidence=CONFIDENCE, seed=seed)
    low, high = estimate.interval or (None, None)
    return {
        "problem": problem,
        "discount": DISCOUNTS[problem],
        "log": seed,
        "rows": len(data),
        "value": estimate.value,
        "standard_error": estimate.standard_error,
        "low": low,
        "high": high,
        "logged_mean": float(data.rewards.mean()),
        "seconds": time.perf_counter() - started,
    }


def make_log(problem: str, seed: int, scale: Scale) -> Transitions:
    """The log of this seed."""
    if problem == "reacher":
        return reacher.make_log(1000 + seed, scale.reacher_rows)
    return pendulum().log(scale.pendulum_rows, np.random.default_rng([3, seed]))


def _target(problem: str) -> Policy:
    if problem == "reacher":
        return reacher.noisy(reacher.Actor.load(), reacher.TARGET_NOISE)
    return pendulum().target
