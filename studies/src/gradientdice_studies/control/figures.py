"""One picture: error and width of the intervals against the size of the log, by half and method."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # before pyplot: figures go to files, and a machine without a screen must do

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from gradientdice_studies.control.d3rlpy_table import METHOD, all_methods
from gradientdice_studies.control.methods import methods
from gradientdice_studies.control.summary import pooled, summarised
from gradientdice_studies.frames import groups, rows_where
from gradientdice_studies.store import ResultStore

# Okabe and Ito's palette.
COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
TITLES = {"develop": "tasks that were developed on", "report": "tasks kept for the report"}
FIGURES = {"rmse": "median RMSE / gap", "width": "median half-width / gap"}


def draw_all(store: ResultStore, frame: pd.DataFrame) -> dict[str, Path]:
    """Writes the figure as PNG and PDF; name -> PNG."""
    cells = summarised(all_methods(frame))
    halves = [half for half in ("develop", "report") if len(rows_where(cells, half=half))]
    figure, axes = plt.subplots(
        len(FIGURES), len(halves), figsize=(4.6 * len(halves), 6.4), layout="constrained", sharex=True, squeeze=False
    )
    for row, (name, label) in enumerate(FIGURES.items()):
        for place, half in enumerate(halves):
            axis = axes[row, place]
            _draw(axis, rows_where(cells, half=half), name)
            if place == 0:
                axis.set_ylabel(label)
            if row == 0:
                axis.set_title(TITLES[half], fontsize=11)
            else:
                axis.set_xlabel("rows of the log")
    _legend(figure, axes.ravel())
    return store.write_figures({"control": figure})


def _legend(figure: Figure, axes: Iterable[Axes]) -> None:
    """One for all panels: a method may have been run on one half alone."""
    handles = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=3, fontsize=9, frameon=False)


def _draw(axis: Axes, cells: pd.DataFrame, name: str) -> None:
    """Medians over tasks and discounts; at 1 the answer is no better than the behaviour's value."""
    axis.axhline(1.0, color="#999999", linewidth=1, linestyle=":")
    for method, color in zip((*methods(), METHOD), COLORS, strict=True):
        some = rows_where(cells, method=method)
        points = {rows: pooled(here)[name] for (rows,), here in groups(some, "rows")}
        known = {rows: point for rows, point in sorted(points.items()) if point == point}
        if known:
            label = f"{method} (below discount 1)" if method == METHOD else method
            axis.plot(list(known), list(known.values()), "o-", color=color, label=label, ms=4)
    axis.set(xscale="log", yscale="log")
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.grid(alpha=0.3)
