"""The verdict of `evaluate` beside its true error, on problems with known values.

The behaviour goes from near the target to far from it; logs are short and long, features right and wrong.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gradientdice.base.errors import InputError
from gradientdice.evaluation.evaluate import evaluate
from gradientdice.functions.linear import LinearFeatures
from gradientdice.functions.tabular import Tabular
from gradientdice.policies import TabularPolicy
from gradientdice_studies.coverage.problems import Problem, problems
from gradientdice_studies.coverage.run import merged_features
from gradientdice_studies.parallel import fill_parts
from gradientdice_studies.store import ResultStore

DISCOUNTS = (0.9, 0.99)
SIZES = (200, 1_000, 10_000)
# The share of the behaviour's choices that are the target's own; the rest is the target's least likely action.
OVERLAPS = {"good": 0.7, "fair": 0.2, "poor": 0.03, "bad": 0.004}
# Thresholds may be set on these problems; they are shown on the others.
DEVELOP = ("random 5×2", "Boyan, continuing", "ending, random 6×2")
CHECK, THRESHOLD = "check: ", "threshold: "


@dataclass(frozen=True)
class Scale:
    """How many logs are drawn for each cell."""

    replications: int = 20


QUICK = Scale(replications=4)


def run(folder: Path, scale: Scale, *, force: bool = False) -> tuple[ResultStore, pd.DataFrame]:
    """One row per log and function class: the verdict beside the true error."""
    store = ResultStore(folder, "verdicts", asdict(scale), force=force)
    parts = {
        store.part(f"{k}-{overlap}.parquet"): (name, overlap, scale.replications)
        for (k, name), overlap in product(enumerate(problems()), OVERLAPS)
    }
    fill_parts(store, "problems and overlaps", parts, run_part)
    frame = pd.concat([pd.read_parquet(path) for path in parts], ignore_index=True)
    store.write(folder / "verdicts.csv", frame.to_csv)
    return store, frame


def run_part(name: str, overlap: str, replications: int) -> list[dict[str, Any]]:
    """All logs of one problem at one overlap."""
    problem, rows = logged_with(problems()[name](), OVERLAPS[overlap]), []
    states, actions = problem.terminal, problem.mdp.num_actions
    policy = TabularPolicy(problem.target[:states])
    classes = {"right": Tabular(states, actions), "misspecified": LinearFeatures(merged_features(states, actions))}
    for discount, size, replication in product(DISCOUNTS, SIZES, range(replications)):
        truth = problem.truth(discount)
        data = problem.trajectories(size, np.random.default_rng([replication, size]))
        for features, functions in classes.items():
            half = "develop" if name in DEVELOP else "report"
            cell = {"problem": name, "half": half, "overlap": overlap, "discount": discount, "rows": size}
            cell |= {"features": features}
            try:
                estimate = evaluate(data, policy, discount=discount, functions=functions)
            except InputError:
                rows.append({**cell, "verdict": "refused", "inside": None, "error": None})
                continue
            assert estimate.interval is not None
            low, high = estimate.interval
            error = abs(estimate.value - truth) / float(np.std(data.rewards))
            judged = {"verdict": str(estimate.verdict), "inside": float(low <= truth <= high), "error": error}
            figures = {f"{CHECK}{check.name}": float(check.value) for check in estimate.checks}
            figures |= {f"{THRESHOLD}{check.name}": float(check.caution) for check in estimate.checks}
            rows.append({**cell, **judged, **figures})
    return rows


def logged_with(problem: Problem, share: float) -> Problem:
    """The problem, logged by a behaviour with this share of the target and the rest on its least likely action."""
    least = np.eye(problem.target.shape[1])[problem.target.argmin(axis=1)]
    return replace(problem, behavior=share * problem.target + (1 - share) * least)
