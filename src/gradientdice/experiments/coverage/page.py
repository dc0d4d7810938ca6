"""The results page for coverage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from gradientdice.experiments.coverage.run import SIZES, Scale
from gradientdice.experiments.markdown import number, table


def write_page(path: Path, frame: pd.DataFrame, scale: Scale) -> None:
    """Writes the page."""
    path.write_text("\n\n".join(_sections(frame, scale)) + "\n")


def _sections(frame: pd.DataFrame, scale: Scale) -> list[str]:
    right = frame[(frame["features"] == "right") & (frame["method"] == "normal") & (frame["rows"] >= 1000)]
    thin = right[right["answered"] < 0.5 * scale.replications]
    right = right[right["answered"] >= 0.5 * scale.replications]
    error = np.sqrt(0.95 * 0.05 / scale.replications)
    inside = right["coverage"].between(0.93, 0.97)
    sections = [
        "# Do the intervals cover?",
        f"Written by `gradientdice reproduce coverage`: {scale.replications:,} logs a cell, 95% intervals of the closed-form GradientDICE "
        "estimate (λ = 1, ξ = 0). A cell's own Monte Carlo error is about "
        f"{error:.1%}. Logs are independent transitions, or trajectories of at most 25 steps whose episodes are the clusters; two of the six problems have "
        "episodes that end. Where a log lacks a pair that the policy needs, a table refuses it; such logs are counted and left out.",
        f"**Right features, normal intervals, n ≥ 1,000:** {inside.sum()} of {len(inside)} cells lie between 93% and 97%; the lowest is "
        f"{right['coverage'].min():.1%}, the highest {right['coverage'].max():.1%}.",
    ]
    outside = right[~inside]
    if len(outside):
        rows = [
            [r["problem"], f"{r['discount']:g}", r["rows"], r["logging"], f"{r['coverage']:.1%}", f"{r['refused']}"]
            for _, r in outside.iterrows()
        ]
        sections += ["Cells outside:", table(["problem", "γ", "n", "logging", "coverage", "refused"], rows)]
    if len(thin):
        rows = [
            [r["problem"], f"{r['discount']:g}", r["rows"], r["logging"], r["answered"], _share(r["coverage"])]
            for _, r in thin.iterrows()
        ]
        sections += [
            f"Not counted there: {len(thin)} cells in which the table refused more than half of the logs, because they lack a pair that "
            "the policy needs. What they covered among the logs that were answered:",
            table(["problem", "γ", "n", "logging", "answered", "coverage"], rows),
        ]
    for features in ("right", "misspecified"):
        for logging in ("independent", "trajectories"):
            chosen = frame[
                (frame["features"] == features) & (frame["logging"] == logging) & (frame["method"] == "normal")
            ]
            rows = []
            for (problem, discount), group in chosen.groupby(["problem", "discount"], sort=False):
                by_size = group.set_index("rows")
                cells = [_cell(by_size.loc[size]) for size in SIZES]
                rows.append([problem, f"{discount:g}", *cells])
            title = (
                "Right features (a table)"
                if features == "right"
                else "Misspecified features (neighbouring states merged)"
            )
            sections += [
                f"## {title}, {logging}",
                "Coverage, median width, and refused logs in brackets if there were any.",
                table(["problem", "γ", *(f"n = {size:,}" for size in SIZES)], rows),
            ]
    small = frame[(frame["features"] == "right") & (frame["rows"] <= 1000)]
    rows = []
    for (method, size), group in small.groupby(["method", "rows"], sort=False):
        rows.append(
            [
                method,
                f"{size:,}",
                f"{group['coverage'].mean():.1%}",
                f"{group['coverage'].min():.1%}",
                f"{group['coverage'].max():.1%}",
            ]
        )
    sections += [
        "## Methods on small logs",
        "Over all problems, discounts and ways of logging with right features.",
        table(["method", "n", "mean coverage", "lowest", "highest"], rows),
    ]
    return sections


def _share(value: float) -> str:
    return "—" if np.isnan(value) else f"{value:.1%}"


def _cell(row: pd.Series) -> str:
    if row["answered"] == 0:
        return f"({row['refused']} refused)"
    text = f"{row['coverage']:.1%}, {number(row['width'])}"
    return text if row["refused"] == 0 else f"{text} ({row['refused']})"
