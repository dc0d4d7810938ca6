"""From rows to errors: each estimator beside the best one, its coverage, its time, and the choice of `compare`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from gradientdice_studies.frames import column, groups, kept, records, rows_where
from gradientdice_studies.shootout.run import OWN, PROBLEMS

CELL = ("problem", "discount", "rows", "overlap")
# Beyond this multiple of the scale of the rewards, the size of an error only says that the estimator failed.
WORST = 1e3


def prepared(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with their squared errors and whether the truth was inside the interval."""
    error = (frame["value"] - frame["truth"]).clip(-WORST, WORST)
    inside = (frame["low"] <= frame["truth"]) & (frame["truth"] <= frame["high"])
    return frame.assign(squared=error**2, inside=inside.where(frame["low"].notna()))


def errors(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per cell and estimator: the root mean squared error, how often it answered, coverage and time."""
    grouped = frame.groupby([*CELL, "estimator"], sort=False)
    table = grouped.agg(
        squared=("squared", "mean"),
        answered=("value", "count"),
        logs=("seed", "nunique"),
        covered=("inside", "mean"),
        seconds=("seconds", "median"),
    ).reset_index()
    table["rmse"] = np.sqrt(table["squared"])
    return table


def whole(table: pd.DataFrame) -> pd.DataFrame:
    """The estimators that answered every log of a cell: only their errors are comparable."""
    return kept(table, table["answered"] == table["logs"])


def beside_best(table: pd.DataFrame) -> pd.DataFrame:
    """One row per cell: GradientDICE's error, the best one's, and their ratio."""
    rows = []
    for cell, group in groups(whole(table), *CELL):
        found = {row["estimator"]: row["rmse"] for row in records(group)}
        best = min(found, key=lambda name: found[name])
        if OWN in found:
            # With a table several estimators give the same number, up to rounding.
            alike = found[OWN] <= found[best] * (1 + 1e-6)
            rows.append([*cell, found[OWN], OWN if alike else best, found[best]])
    frame = pd.DataFrame(rows, columns=[*CELL, "own", "best", "least"])
    return frame.assign(factor=frame["own"] / frame["least"])


def significance(frame: pd.DataFrame, cell: dict[str, Any], other: str) -> float:
    """How many standard errors GradientDICE's squared error is above another's, paired by log."""
    rows = rows_where(frame, **cell)
    own, best = (rows_where(rows, estimator=name).set_index("seed")["squared"] for name in (OWN, other))
    gap = (own - best).dropna().to_numpy(dtype=float)
    spread = gap.std(ddof=1) / np.sqrt(len(gap))
    return float(gap.mean() / spread) if spread > 0 else 0.0


def median_factor(table: pd.DataFrame, estimator: str) -> float:
    """The median over cells of an estimator's error, divided by the best one's."""
    factors = []
    for _, group in groups(whole(table), *CELL):
        found = {row["estimator"]: row["rmse"] for row in records(group)}
        if estimator in found:
            factors.append(found[estimator] / min(found.values()))
    return float(np.median(factors)) if factors else np.nan


def picks(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per cell: the error of the choice of `compare`, and how many times the best estimator's it is."""
    least = {cell: column(group, "rmse").min() for cell, group in groups(whole(errors(frame)), *CELL)}
    rows = []
    for cell, chosen in groups(kept(frame, frame["chosen"]), *CELL):
        rmse = float(np.sqrt(column(chosen, "squared").mean()))
        rows.append([*cell, rmse, rmse / least.get(cell, np.nan)])
    return pd.DataFrame(rows, columns=[*CELL, "rmse", "factor"])


def problem_name(key: str) -> str:
    """The name on the page."""
    return PROBLEMS[key]().name
