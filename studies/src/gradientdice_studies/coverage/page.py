"""The numbers of the results page."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom

from gradientdice_studies.coverage.run import FULL, QUICK, SIZES, WHOLE, Scale, run
from gradientdice_studies.frames import column, groups, kept, records, rows_where
from gradientdice_studies.markdown import number, table
from gradientdice_studies.steps import Steps

LOW, HIGH = 0.93, 0.97
TITLES = {
    "right": "Right features (a table)",
    "misspecified": "Misspecified features (neighbouring states merged)",
}


def context(frame: pd.DataFrame, scale: Scale) -> dict[str, Any]:
    """The values of the template's names."""
    right = rows_where(frame, features="right", method="default")
    large = kept(right, column(right, "rows") >= 1000)
    mostly = column(large, "answered") >= 0.5 * scale.replications
    counted, thin = kept(large, mostly), kept(large, ~mostly)
    coverage = column(counted, "coverage")
    inside = coverage.between(LOW, HIGH)
    outside = kept(counted, ~inside)
    return {
        "replications": f"{scale.replications:,}",
        "by_chance": f"{_outside_by_chance(scale.replications):.0%}",
        "monte_carlo_error": f"{np.sqrt(0.95 * 0.05 / scale.replications):.1%}",
        "inside": f"{inside.sum()} of {len(inside)}",
        "lowest": f"{coverage.min():.1%}",
        "highest": f"{coverage.max():.1%}",
        "outside": _cells(outside, "coverage", "refused") if len(outside) else "",
        "thin_cells": len(thin),
        "thin": _cells(thin, "answered", "coverage"),
        "sections": [
            {"title": TITLES[features], "logging": logging, "table": _section(frame, features, logging)}
            for features, logging in product(TITLES, ("independent", "trajectories"))
        ],
        "methods": _methods(frame),
        "verdict_logs": f"{scale.verdicts:,}",
        "verdicts": _verdicts(frame),
        "trusted": _trusted(rows_where(frame, method=WHOLE)),
    }


def _outside_by_chance(logs: int) -> float:
    """The share of cells whose measured coverage would be outside although the true one is 95%."""
    inside = binom.cdf(np.floor(HIGH * logs), logs, 0.95) - binom.cdf(np.ceil(LOW * logs) - 1, logs, 0.95)
    return float(1 - inside)


def _cells(frame: pd.DataFrame, *shown: str) -> str:
    """One row per cell, with these columns of the table."""
    rows = []
    for row in records(frame):
        row |= {"coverage": _share(row["coverage"]), "discount": f"{row['discount']:g}"}
        rows.append([row[name] for name in ("problem", "discount", "rows", "logging", *shown)])
    return table(["problem", "γ", "n", "logging", *shown], rows)


def _section(frame: pd.DataFrame, features: str, logging: str) -> str:
    rows = []
    chosen = rows_where(frame, features=features, logging=logging, method="default")
    for (problem, discount), group in groups(chosen, "problem", "discount"):
        by_size = {row["rows"]: row for row in records(group)}
        rows.append([problem, f"{discount:g}", *(_cell(by_size[size]) for size in SIZES)])
    return table(["problem", "γ", *(f"n = {size:,}" for size in SIZES)], rows)


def _methods(frame: pd.DataFrame) -> str:
    rows = []
    right = rows_where(frame, features="right")
    small = kept(right, (column(right, "rows") <= 1000) & (column(right, "method") != WHOLE))
    for (method, size), group in groups(small, "method", "rows"):
        coverage = column(group, "coverage")
        shares = (coverage.mean(), coverage.min(), coverage.max())
        rows.append([method, f"{size:,}", *(f"{share:.1%}" for share in shares)])
    return table(["method", "n", "mean coverage", "lowest", "highest"], rows)


def _verdicts(frame: pd.DataFrame) -> str:
    """How often `evaluate` said trust, and how often it was right to, by features and size."""
    rows = []
    for (features, size), group in groups(rows_where(frame, method=WHOLE), "features", "rows"):
        group = kept(group, column(group, "answered") > 0)
        if group.empty:
            continue
        answered, trusted = int(column(group, "answered").sum()), int(column(group, "trusted").sum())
        inside = int(column(group, "trusted_inside").sum())
        coverage = float(np.average(column(group, "coverage"), weights=column(group, "answered")))
        share = f"{inside / trusted:.1%}" if trusted else "—"
        rows.append([features, f"{size:,}", f"{answered:,}", f"{coverage:.1%}", f"{trusted / answered:.1%}", share])
    return table(["features", "n", "logs", "coverage", "trusted", "coverage of those"], rows)


def _trusted(whole: pd.DataFrame) -> str:
    """The coverage of all answers that were trusted."""
    inside, trusted = int(column(whole, "trusted_inside").sum()), int(column(whole, "trusted").sum())
    return f"{inside:,} of {trusted:,}" + (f" ({inside / trusted:.1%})" if trusted else "")


def _share(value: float) -> str:
    return "—" if np.isnan(value) else f"{value:.1%}"


def _cell(row: dict[str, Any]) -> str:
    if row["answered"] == 0:
        return f"({row['refused']} refused)"
    text = f"{row['coverage']:.1%}, {number(row['width'])}"
    return text if row["refused"] == 0 else f"{text} ({row['refused']})"


STEPS = Steps(full=FULL, quick=QUICK, run=run, context=context)
