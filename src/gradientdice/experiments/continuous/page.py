"""The results page for continuous states."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from gradientdice.experiments.continuous.run import Scale
from gradientdice.experiments.markdown import number, table


def write_page(path: Path, frame: pd.DataFrame, scale: Scale) -> None:
    """Writes the page."""
    rows = []
    for (problem, discount), group in frame.groupby(["problem", "discount"], sort=False):
        first = group.iloc[0]
        to_behavior, to_log = abs(first["truth"] - first["behavior"]), abs(first["truth"] - first["logged_mean"])
        error, best = group["error"].median(), group["best_error"].median()
        rows.append(
            [
                problem,
                f"{discount:g}",
                f"{first['truth']:.4g} ± {number(first['truth_error'], 1)}",
                f"{first['behavior']:.4g}",
                f"{first['logged_mean']:.4g}",
                number(error),
                f"{error / to_behavior:.0%}",
                f"{error / to_log:.0%}",
                f"{group['inside'].sum()} of {len(group)}",
                number((group["high"] - group["low"]).median()),
                f"{error / best:.1f}",
                f"{group['seconds'].median():.0f}",
            ]
        )
    header = [
        "problem",
        "γ",
        "truth",
        "behaviour's value",
        "logged mean",
        "median error",
        "of the gap to the behaviour",
        "of the gap to the logged mean",
    ]
    header += ["truth inside", "median width", "error ÷ that of the best candidate", "seconds"]
    replications = frame["replication"].nunique()
    text = [
        "# Continuous states with nothing tuned",
        f"Written by `gradientdice reproduce continuous`: {replications} logs of {scale.rows:,} transitions for each problem, 95% intervals of the default answer (kernel features chosen "
        f"by held-out kernel Bellman loss and precision, cross-fitted doubly robust). The truth is a Monte Carlo mean over {scale.truth_episodes:,} episodes. With few logs the "
        "shares of truths inside are rough.",
        table(header, rows),
        f"Over all of them: the chosen features' error is {np.median(frame['error'] / frame['best_error']):.1f} times (median) that of the candidate that the truth would have picked; the truth is inside "
        f"{frame['inside'].mean():.0%} of the intervals.",
        "Pendulum's value at a small discount hangs on the first steps, where the two policies hardly differ; MountainCar starts anywhere (from Gymnasium's narrow start no policy arrives soon "
        "enough to matter), and its logged mean is −1 whatever the policy does.",
    ]
    path.write_text("\n\n".join(text) + "\n")
