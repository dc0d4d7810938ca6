"""From rows to errors: each estimator beside the best one, its coverage, its time, and what compare picked."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gradientdice.experiments.shootout.run import OWN, PROBLEMS

CELL = ["problem", "discount", "rows", "overlap"]
# An error beyond this many times the rewards' scale says no more than that the estimator failed.
WORST = 1e3


def prepared(frame: pd.DataFrame) -> pd.DataFrame:
    """With squared errors and whether the truth was inside."""
    error = (frame["value"] - frame["truth"]).clip(-WORST, WORST)
    inside = (frame["low"] <= frame["truth"]) & (frame["truth"] <= frame["high"])
    return frame.assign(squared=error**2, inside=inside.where(frame["low"].notna()))


def errors(frame: pd.DataFrame) -> pd.DataFrame:
    """One row a cell and estimator: the root mean squared error, how often it answered, coverage and time."""
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
    return table[table["answered"] == table["logs"]]


def beside_best(table: pd.DataFrame) -> pd.DataFrame:
    """One row a cell: GradientDICE's error, the best one's, and their ratio."""
    rows = []
    for cell, group in whole(table).groupby(CELL, sort=False):
        best = group.loc[group["rmse"].idxmin()]
        own = group[group["estimator"] == OWN]
        if len(own):
            # With a table several are one number, up to rounding.
            alike = own["rmse"].iloc[0] <= best["rmse"] * (1 + 1e-6)
            rows.append([*cell, own["rmse"].iloc[0], OWN if alike else best["estimator"], best["rmse"]])
    frame = pd.DataFrame(rows, columns=[*CELL, "own", "best", "least"])
    return frame.assign(factor=frame["own"] / frame["least"])


def significance(frame: pd.DataFrame, cell: tuple, other: str) -> float:
    """How many standard errors GradientDICE's squared error is above another's, log by log."""
    rows = frame[(frame[CELL] == list(cell)).all(axis=1)]
    both = (
        rows[rows["estimator"].isin([OWN, other])].pivot(index="seed", columns="estimator", values="squared").dropna()
    )
    gap = both[OWN] - both[other]
    spread = gap.std(ddof=1) / np.sqrt(len(gap))
    return float(gap.mean() / spread) if spread > 0 else 0.0


def picks(frame: pd.DataFrame) -> pd.DataFrame:
    """One row a cell: the error of compare's own pick and that of the best estimator."""
    chosen = frame[frame["chosen"]].groupby(CELL, sort=False).agg(squared=("squared", "mean"), logs=("seed", "nunique"))
    best = whole(errors(frame)).groupby(CELL, sort=False)["rmse"].min()
    joined = chosen.join(best.rename("least")).reset_index()
    return joined.assign(rmse=np.sqrt(joined["squared"]), factor=np.sqrt(joined["squared"]) / joined["least"])


def problem_name(key: str) -> str:
    """As the page calls it."""
    return PROBLEMS[key]().name
