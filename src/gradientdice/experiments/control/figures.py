"""One picture: error and width of the intervals against the size of the log, by half and method."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # before pyplot: figures go to files, and a machine without a screen must do

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes

from gradientdice.experiments.control.summary import pooled, summarised
from gradientdice.experiments.frames import groups, rows_where
from gradientdice.experiments.store import ResultStore

# Okabe and Ito's palette.
COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
FIGURES = {"rmse": "median RMSE / gap", "width": "median half-width / gap"}


def draw_all(store: ResultStore, frame: pd.DataFrame) -> dict[str, Path]:
    """Writes the figure as PNG and PDF; name -> PNG."""
    cells = summarised(frame)
    halves = [half for half in ("develop", "report") if len(rows_where(cells, half=half))]
    figure, axes = plt.subplots(
        len(FIGURES), len(halves), figsize=(4.6 * len(halves), 6.4), layout="constrained", sharex=True, squeeze=False
    )
    for row, (name, label) in enumerate(FIGURES.items()):
        for place, half in enumerate(halves):
            axis = axes[row, place]
            _draw(axis, rows_where(cells, half=half), name)
            axis.set_ylabel(label)
            if row == 0:
                axis.set_title(f"tasks: {half}")
            else:
                axis.set_xlabel("rows of the log")
    axes[0, 0].legend(fontsize=8)
    return store.write_figures({"control": figure})


def _draw(axis: Axes, cells: pd.DataFrame, name: str) -> None:
    """Medians over tasks and discounts; at 1 the answer is no better than the behaviour's value."""
    axis.axhline(1.0, color="#999999", linewidth=1, linestyle=":")
    for (method,), some in groups(cells, "method"):
        number = list(cells["method"].unique()).index(method)
        points = {rows: pooled(here)[name] for (rows,), here in groups(some, "rows")}
        axis.plot(list(points), list(points.values()), "o-", color=COLORS[number % len(COLORS)], label=method, ms=4)
    axis.set(xscale="log", yscale="log")
    axis.grid(alpha=0.3)
