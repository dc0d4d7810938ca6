"""Error against size and against overlap, one panel per benchmark; and all estimators beside the best one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # before pyplot: figures go to files, and a machine without a screen must do

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from gradientdice_studies.frames import column, kept, rows_where
from gradientdice_studies.shootout.analysis import CELL, errors, prepared, problem_name, whole
from gradientdice_studies.shootout.run import CROSS_FITTED, OWN
from gradientdice_studies.store import ResultStore

# One or two of each family, so that the lines can be distinguished; the tables have all.
SHOWN: dict[str, dict[str, Any]] = {
    OWN: {"color": "#0b5fa5", "linewidth": 2.6, "marker": "o", "zorder": 5},
    CROSS_FITTED: {"color": "#2f9e8f", "linewidth": 1.6, "marker": "s"},
    "GEM": {"color": "#8a5fbf", "linewidth": 1.4, "marker": "^"},
    "BCH": {"color": "#c06c2b", "linewidth": 1.4, "marker": "v"},
    "COPTD": {"color": "#8a5fbf", "linewidth": 1.4, "marker": "^"},
    "PDIS": {"color": "#999999", "linewidth": 1.2, "marker": "x"},
    "WPDIS": {"color": "#555555", "linewidth": 1.2, "marker": "x"},
    "WDR": {"color": "#d1495b", "linewidth": 1.4, "marker": "d"},
}


def draw_all(store: ResultStore, frame: pd.DataFrame) -> dict[str, Path]:
    """Writes every figure as PNG and PDF; name -> PNG."""
    table = errors(prepared(frame))
    figures = {
        "size": lines(table, "rows", "transitions"),
        "overlap": lines(table, "overlap", "share of the target's own choices"),
        "factors": factors(table),
    }
    return store.write_figures(figures)


def lines(table: pd.DataFrame, axis_name: str, label: str) -> Figure:
    """Root mean squared error against size (at no overlap) or against overlap (at the middle size)."""
    answered = whole(table)
    tasks = list(answered[["problem", "discount"]].drop_duplicates().itertuples(index=False))
    columns = 4
    count = -(-len(tasks) // columns)
    figure, axes = plt.subplots(count, columns, figsize=(13, 2.6 * count), layout="constrained", squeeze=False)
    for axis, (problem, discount) in zip(axes.ravel(), tasks, strict=False):
        task = rows_where(answered, problem=problem, discount=discount)
        sizes = sorted(column(task, "rows").unique())
        if axis_name == "rows":
            task = kept(task, task["overlap"] == column(task, "overlap").min())
            axis.set_xscale("log")
            axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
            axis.xaxis.set_minor_formatter(NullFormatter())
        else:
            task = rows_where(task, rows=sizes[len(sizes) // 2])
        for name, style in SHOWN.items():
            own = rows_where(task, estimator=name).sort_values(by=axis_name)
            if len(own):
                axis.plot(own[axis_name], own["rmse"], label=name, markersize=4, **style)
        axis.set(yscale="log", title=f"{problem_name(problem)}, γ = {discount:g}")
        axis.grid(alpha=0.3)
        axis.tick_params(labelsize=8)
        axis.yaxis.set_minor_formatter(NullFormatter())
    for axis in axes.ravel()[len(tasks) :]:
        axis.set_axis_off()
    found = {text: line for axis in axes.ravel() for line, text in zip(*axis.get_legend_handles_labels(), strict=True)}
    names = [name for name in SHOWN if name in found]
    figure.legend([found[name] for name in names], names, loc="outside upper center", ncols=len(names), frameon=False)
    figure.supxlabel(label, fontsize=10)
    figure.supylabel("root mean squared error", fontsize=10)
    return figure


def factors(table: pd.DataFrame) -> Figure:
    """Each estimator's error divided by the best one's: the median over a task's sizes and overlaps."""
    answered = whole(table).copy()
    answered["factor"] = answered["rmse"] / answered.groupby(list(CELL))["rmse"].transform("min")
    grid = answered.pivot_table(index="estimator", columns=["problem", "discount"], values="factor", aggfunc="median")
    grid = grid[answered[["problem", "discount"]].drop_duplicates().itertuples(index=False, name=None)]
    grid = grid.loc[grid.median(axis=1).sort_values().index]
    figure, axis = plt.subplots(figsize=(13, 0.34 * len(grid) + 2.4), layout="constrained")
    image = axis.imshow(grid.to_numpy(), norm=LogNorm(1, 100), cmap="YlOrRd", aspect="auto")
    axis.set_xticks(
        range(grid.shape[1]), [f"{problem_name(p)}, γ={d:g}" for p, d in grid.columns], rotation=40, ha="right"
    )
    axis.set_yticks(range(len(grid)), list(grid.index))
    for row, task in np.argwhere(np.isfinite(grid.to_numpy())):
        value = grid.iat[row, task]
        text = f"{value:.1f}" if value < 10 else f"{value:.0f}" if value < 1000 else ">999"
        axis.text(task, row, text, ha="center", va="center", fontsize=7, color="white" if value > 25 else "black")
    figure.colorbar(image, label="times the best estimator's error", pad=0.01)
    return figure
