"""Is the verdict right? How often "trust" goes with an interval that covers, and "do not trust" with a large error.

Problems with known values, logged from near the target to far from it, with few and many rows, right and wrong features.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from gradientdice.errors import InputError
from gradientdice.experiments.coverage.problems import Problem, problems
from gradientdice.experiments.coverage.run import merged_features
from gradientdice.experiments.markdown import number, table
from gradientdice.experiments.parallel import fill_parts
from gradientdice.experiments.store import ResultStore
from gradientdice.functions.linear import LinearFeatures
from gradientdice.functions.tabular import Tabular
from gradientdice.inference.evaluate import evaluate
from gradientdice.policies import TabularPolicy

DISCOUNTS = (0.9, 0.99)
SIZES = (200, 1_000, 10_000)
# How much of the target's own choice is in the behaviour: the rest is the action that the target likes least.
OVERLAPS = {"good": 0.7, "fair": 0.2, "poor": 0.03, "bad": 0.004}
VERDICTS = ("trust", "caution", "do not trust")


@dataclass(frozen=True)
class Scale:
    """How many logs are drawn for each cell."""

    replications: int = 20


QUICK = Scale(replications=4)


def run(folder: Path, scale: Scale, *, force: bool = False) -> tuple[ResultStore, pd.DataFrame]:
    """One row a log: the verdict beside what happened."""
    store = ResultStore(folder, "verdicts", asdict(scale), force=force)
    parts = {
        store.part(f"{k}-{overlap}.parquet"): (name, overlap, scale.replications)
        for (k, name), overlap in product(enumerate(problems()), OVERLAPS)
    }
    fill_parts(store, "problems and overlaps", parts, run_part)
    frame = pd.concat([pd.read_parquet(path) for path in parts], ignore_index=True)
    store.write(folder / "verdicts.csv", frame.to_csv)
    return store, frame


def run_part(name: str, overlap: str, replications: int) -> list[dict[str, object]]:
    """All logs of one problem at one overlap."""
    problem, rows = _logged_with(problems()[name](), OVERLAPS[overlap]), []
    states, actions = problem.terminal, problem.mdp.num_actions
    policy = TabularPolicy(problem.target[:states])
    classes = {"right": Tabular(states, actions), "misspecified": LinearFeatures(merged_features(states, actions))}
    for discount, size, replication in product(DISCOUNTS, SIZES, range(replications)):
        truth = problem.truth(discount)
        data = problem.trajectories(size, np.random.default_rng([replication, size]))
        for features, functions in classes.items():
            cell = {"problem": name, "overlap": overlap, "discount": discount, "rows": size, "features": features}
            try:
                estimate = evaluate(data, policy, discount=discount, functions=functions)
            except InputError:
                rows.append({**cell, "verdict": "refused", "inside": None, "error": None})
                continue
            assert estimate.interval is not None
            low, high = estimate.interval
            error = abs(estimate.value - truth) / float(np.std(data.rewards))
            rows.append(
                {**cell, "verdict": str(estimate.verdict), "inside": float(low <= truth <= high), "error": error}
            )
    return rows


def _logged_with(problem: Problem, share: float) -> Problem:
    """The problem, logged by a behaviour with this share of the target and the rest on its least likely action."""
    least = np.eye(problem.target.shape[1])[problem.target.argmin(axis=1)]
    return replace(problem, behavior=share * problem.target + (1 - share) * least)


def write_page(path: Path, frame: pd.DataFrame, scale: Scale) -> None:
    """Writes the page."""
    answered = frame[frame["verdict"] != "refused"]
    text = [
        "# Is the verdict right?",
        f"Written by `gradientdice reproduce verdicts`: six problems with known values, trajectories of at most 25 steps, {scale.replications} logs a cell. The behaviour is a mixture of the target (a share of "
        f"{', '.join(f'{share:g}' for share in OVERLAPS.values())}: good, fair, poor and bad overlap) and of the action that the target likes least; {', '.join(f'{size:,}' for size in SIZES)} rows; "
        "γ = 0.9 and 0.99; a table, and features that are wrong on purpose. Errors are in standard deviations of the logged rewards; a large error is one above 0.25.",
        f"{len(frame):,} logs; {np.mean(frame['verdict'] == 'refused'):.0%} were refused, because a pair that the target needs was never logged. Of the others:",
        table(_HEADER, [_row(verdict, answered[answered["verdict"] == verdict]) for verdict in VERDICTS]),
        "## By features and overlap",
        table(
            ["features", "overlap", *_HEADER],
            [
                [features, overlap, *_row(verdict, group[group["verdict"] == verdict])]
                for (features, overlap), group in answered.groupby(["features", "overlap"], sort=False)
                for verdict in VERDICTS
                if (group["verdict"] == verdict).any()
            ],
        ),
    ]
    path.write_text("\n\n".join(text) + "\n")


_HEADER = [
    "verdict",
    "logs",
    "truth inside the 95% interval",
    "median error",
    "90% quantile of the error",
    "large errors",
]


def _row(verdict: str, rows: pd.DataFrame) -> list[str]:
    if rows.empty:
        return [verdict, "0", "", "", "", ""]
    error = rows["error"]
    shares = [
        f"{rows['inside'].mean():.0%}",
        number(error.median()),
        number(error.quantile(0.9)),
        f"{(error > 0.25).mean():.0%}",
    ]
    return [verdict, f"{len(rows):,}", *shares]
