"""The results page for continuous states."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from gradientdice.experiments.continuous.run import Scale
from gradientdice.experiments.markdown import number, table

LOG = ["problem", "discount", "replication"]

# Ways to choose among the candidates of one log, each a function of their rows that gives the one chosen.
CRITERIA: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "the default: Bellman loss with its noise, then the smallest standard error": lambda rows: rows[
        rows["chosen"]
    ].iloc[0],
    "smallest Bellman loss": lambda rows: rows.loc[rows["loss"].idxmin()],
    "smallest flow residual": lambda rows: rows.loc[rows["flow_residual"].idxmin()],
    "smallest flow residual in size": lambda rows: rows.loc[rows["flow_residual"].abs().idxmin()],
    "smallest standard error": lambda rows: rows.loc[rows["standard_error"].idxmin()],
}


def write_page(path: Path, candidates: pd.DataFrame, scale: Scale) -> None:
    """Writes the page."""
    frame = candidates.assign(error=(candidates["value"] - candidates["truth"]).abs())
    frame["inside"] = (frame["low"] <= frame["truth"]) & (frame["truth"] <= frame["high"])
    chosen = frame[frame["chosen"]]
    replications = frame["replication"].nunique()
    text = [
        "# Continuous states with nothing tuned",
        f"Written by `gradientdice reproduce continuous`: {replications} logs of {scale.rows:,} transitions for each problem, 95% intervals of the default answer (kernel features chosen "
        f"by held-out kernel Bellman loss and precision, cross-fitted doubly robust). The truth is a Monte Carlo mean over {scale.truth_episodes:,} episodes.",
        "## The answer",
        _answers(chosen),
        f"Over all of them the truth is inside {chosen['inside'].mean():.0%} of the intervals. How far the interval reaches beyond its standard error (by the spread of nearly as good candidates, and by twice "
        f"the root of the Bellman loss) was settled on logs 0 to 28; on the later ones, which played no part in that, the share is {_share(chosen[chosen['replication'] >= 25])}.",
        "The error cannot be small against the gap where the gap itself is small against the noise that any estimator has: at discount 0.9 the first few steps decide, in which the two policies of pendulum "
        "and of MountainCar hardly differ, while 500 sampled starts alone give the standard error in the table. MountainCar starts anywhere (from Gymnasium's narrow start no policy arrives soon "
        "enough to matter). At discount 0.99 the features' bias is larger than the standard error on CartPole and pendulum: this is what the allowance is for.",
        "## Choosing without the truth",
        "Each log's candidates, ranked by five criteria; how many times the error of its choice is that of the best candidate, which only the truth would pick. All losses are held-out and in one common kernel.",
        _criteria(frame),
        "The flow residual looks at all functions alike, and most of them have nothing to do with the rewards; the Bellman loss looks at the residual of the very Q that enters the answer. Its minimum alone "
        "still picks a fit with a small loss and a huge variance now and then; its noise, and the standard error, guard against that.",
    ]
    path.write_text("\n\n".join(text) + "\n")


def _answers(chosen: pd.DataFrame) -> str:
    rows = []
    for (problem, discount), group in chosen.groupby(["problem", "discount"], sort=False):
        first = group.iloc[0]
        error = group["error"].median()
        rows.append(
            [
                problem,
                f"{discount:g}",
                f"{first['truth']:.4g} ± {number(first['truth_error'], 1)}",
                f"{first['behavior']:.4g}",
                number(error),
                f"{error / abs(first['truth'] - first['behavior']):.0%}",
                number(group["standard_error"].median()),
                f"{group['inside'].sum()} of {len(group)}",
                number((group["high"] - group["low"]).median()),
            ]
        )
    header = [
        "problem",
        "γ",
        "truth",
        "behaviour's value",
        "median error",
        "of the gap between the two",
        "median standard error",
    ]
    return table([*header, "truth inside", "median width"], rows)


def _criteria(frame: pd.DataFrame) -> str:
    logs = [rows for _, rows in frame.groupby(LOG, sort=False)]
    rows = []
    for name, choose in CRITERIA.items():
        factors = np.array([choose(log)["error"] / log["error"].min() for log in logs])
        rows.append(
            [name, f"{np.median(factors):.2f}", f"{np.quantile(factors, 0.9):.1f}", f"{np.mean(factors > 10):.0%}"]
        )
    return table(["criterion", "median factor", "90% quantile", "more than 10 times"], rows)


def _share(rows: pd.DataFrame) -> str:
    return f"{rows['inside'].mean():.0%} of {len(rows)}" if len(rows) else "not yet known"
