"""Error and coverage against each check, on the problems that thresholds were set on and on the others."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # before pyplot: figures go to files, and a machine without a screen must do

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from gradientdice_studies.frames import column, kept, rows_where
from gradientdice_studies.store import ResultStore
from gradientdice_studies.verdicts.run import CHECK, THRESHOLD

BLUE, ORANGE = "#0072B2", "#D55E00"
BINS = 6
# A check whose middle nine tenths lie within this share of its threshold has no curve to show.
NARROW = 0.01


def draw_all(store: ResultStore, frame: pd.DataFrame) -> dict[str, Path]:
    """Writes the figure as PNG and PDF; name -> PNG."""
    answered = kept(frame, column(frame, "verdict") != "refused")
    checks = [str(name) for name in answered.columns if str(name).startswith(CHECK)]
    names = [name for name in checks if _has_curve(answered, name)]
    columns = 4
    rows = math.ceil(len(names) / columns)
    figure, axes = plt.subplots(rows, columns, figsize=(12, 2.5 * rows), layout="constrained", squeeze=False)
    for axis, name in zip(axes.ravel(), names, strict=False):
        _draw(axis, answered, name)
    for axis in axes.ravel()[len(names) :]:
        axis.set_axis_off()
    handles = [
        Line2D([], [], color=BLUE, marker="o", label="truth inside"),
        Line2D([], [], color=ORANGE, marker="s", label="median error ÷ reward deviation"),
        Line2D([], [], color="grey", linestyle="--", label="where thresholds were set"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9)
    return store.write_figures({"verdicts": figure})


def _has_curve(answered: pd.DataFrame, name: str) -> bool:
    low, high = np.quantile(column(answered, name).dropna(), [0.05, 0.95])
    return bool(high - low > NARROW * _threshold(answered, name))


def _threshold(answered: pd.DataFrame, name: str) -> float:
    return float(column(answered, name.replace(CHECK, THRESHOLD)).dropna().iloc[0])


def _draw(axis: Axes, answered: pd.DataFrame, name: str) -> None:
    for half, style in (("develop", {"alpha": 0.4, "linestyle": "--"}), ("report", {"alpha": 1.0})):
        rows = rows_where(answered, half=half).dropna(subset=[name])
        if len(rows) < BINS:
            continue
        curve = _curve(rows, name)
        options: dict[str, Any] = {"markersize": 3.5, "linewidth": 1.2, **style}
        axis.plot(curve["middle"], curve["inside"], color=BLUE, marker="o", **options)
        axis.plot(curve["middle"], curve["error"], color=ORANGE, marker="s", **options)
    axis.axvline(_threshold(answered, name), color="black", linestyle=":", linewidth=1)
    axis.axhline(0.95, color=BLUE, linewidth=0.5, alpha=0.5)
    axis.set_title(name.removeprefix(CHECK), fontsize=9)
    axis.set_ylim(0, 1.03)
    values = column(answered, name).dropna()
    if float(values.min()) > 0 and float(values.max()) > 50 * float(values.min()):
        axis.set_xscale("log")
    elif float(values.abs().max()) > 50:
        axis.set_xscale("symlog", linthresh=1.0)
    axis.tick_params(labelsize=7)
    axis.grid(alpha=0.3)


def _curve(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Coverage and median error in bins with equally many logs."""
    values = column(rows, name).to_numpy(dtype=float)
    edges = np.unique(np.quantile(values, np.linspace(0, 1, BINS + 1)))
    bins = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, max(len(edges) - 2, 0))
    found = []
    for number in np.unique(bins):
        chosen = kept(rows, bins == number)
        found.append(
            {
                "middle": float(column(chosen, name).median()),
                "inside": float(column(chosen, "inside").mean()),
                "error": float(column(chosen, "error").median()),
            }
        )
    return pd.DataFrame(found)
