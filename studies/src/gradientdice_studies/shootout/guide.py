"""The numbers behind the guide for choosing, and behind what is said of the closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from gradientdice_studies.frames import column, groups, kept, records, rows_where
from gradientdice_studies.markdown import number, table
from gradientdice_studies.shootout.analysis import (
    CELL,
    beside_best,
    median_factor,
    problem_name,
    significance,
    whole,
)
from gradientdice_studies.shootout.control import CONTROL
from gradientdice_studies.shootout.run import OWN

NEAR, SURE = 1.1, 2.0
# The log of this one does not show the state: an estimator that models what the log shows cannot be right.
HIDDEN = "model-fail"
COMPARED = (OWN, "GEM", "BCH", "WPDIS", "WDR", "MAGIC", "PDIS")
# What a thin table is compared with.
STATE_RATIOS = ("GEM", "COPTD", "BCH")


def guide(found: pd.DataFrame) -> dict[str, Any]:
    """Errors as multiples of the best one's in the median tabular cell; errors on ModelFail and on thin tables."""
    answered = whole(found)
    markov = kept(found, column(found, "problem").isin(column(_markov(beside_best(found)), "problem")))
    hidden = rows_where(answered, problem=HIDDEN)
    return {
        "times": {name: _times(median_factor(markov, name)) for name in COMPARED},
        "hidden": {
            name: number(column(rows_where(hidden, estimator=name), "rmse").median()) for name in (OWN, "WPDIS", "WDR")
        },
        "thin": _thin(answered),
    }


def closed_form(frame: pd.DataFrame, found: pd.DataFrame) -> dict[str, Any]:
    """In how many tabular cells the closed form is as good as the best estimator, and the cells where it is not."""
    best = beside_best(found)
    markov, hidden = _markov(best), column(rows_where(best, problem=HIDDEN), "factor")
    near = column(markov, "factor") <= NEAR
    above = [
        (row, significance(frame, {name: row[name] for name in CELL}, row["best"]))
        for row in records(kept(markov, ~near))
    ]
    above.sort(key=lambda entry: -entry[0]["factor"])
    return {
        "near": int(near.sum()),
        "cells": len(markov),
        "above": len(above),
        "sure": sum(gap > SURE for _, gap in above),
        "table": _above(above),
        "hidden": [number(hidden.min(), 2), number(hidden.max(), 3)] if len(hidden) else [],
    }


def _markov(best: pd.DataFrame) -> pd.DataFrame:
    """The cells of the tabular benchmarks with a Markov state."""
    return kept(best, ~column(best, "problem").isin([HIDDEN, *CONTROL]))


def _thin(answered: pd.DataFrame) -> dict[str, str]:
    """Taxi's smallest log, in which many pairs are missing; empty if there is none."""
    taxi = rows_where(answered, problem="taxi", overlap=0)
    if taxi.empty:
        return {}
    rows = int(column(taxi, "rows").min())
    told = []
    for (discount,), group in sorted(groups(rows_where(taxi, rows=rows), "discount"), key=lambda entry: entry[0]):
        rmse = {row["estimator"]: row["rmse"] for row in records(group)}
        named = [f"{name} {number(rmse[name])}" for name in (OWN, *STATE_RATIOS) if name in rmse]
        told.append(f"γ = {discount:g}: {', '.join(named)}")
    return {"rows": f"{rows:,}", "errors": "; ".join(told)}


def _above(above: list[tuple[dict[str, Any], float]]) -> str:
    rows = [
        [
            problem_name(row["problem"]),
            f"{row['discount']:g}",
            f"{row['rows']:,}",
            f"{row['overlap']:g}",
            number(row["own"]),
            f"{row['best']} {number(row['least'])}",
            f"{row['factor']:.2f}",
            f"{gap:.1f}",
        ]
        for row, gap in above
    ]
    return table(["benchmark", "γ", "transitions", "overlap", OWN, "best", "factor", "standard errors"], rows)


def _times(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"
