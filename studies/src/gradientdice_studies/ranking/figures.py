"""Two pictures: the calibration of the probability of being the best, and what each method's picks lose."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # before pyplot: figures go to files, and a machine without a screen must do

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gradientdice_studies.frames import column, groups, rows_where
from gradientdice_studies.ranking.d3rlpy_table import with_d3rlpy
from gradientdice_studies.ranking.summary import METHODS, Picks, calibration, judged
from gradientdice_studies.store import ResultStore

# Okabe and Ito's palette.
COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7")
KINDS = {"table": "tables", "control": "control tasks"}


def draw_all(store: ResultStore, frame: pd.DataFrame) -> dict[str, Path]:
    """Writes the figures as PNG and PDF; name -> PNG."""
    rows = judged(with_d3rlpy(frame))
    return store.write_figures({"ranking_calibration": _calibration(rows), "ranking_picks": _picks(rows)})


def _calibration(rows: pd.DataFrame) -> Figure:
    """How often a candidate is the best against how probable that was said to be."""
    kinds = [kind for kind in KINDS if len(rows_where(rows, kind=kind, best_known=True))]
    figure, axes = plt.subplots(
        1, len(kinds), figsize=(4.4 * len(kinds), 4.4), layout="constrained", squeeze=False, sharey=True
    )
    for axis, kind in zip(axes[0], kinds, strict=True):
        axis.plot([0, 1], [0, 1], color="#999999", linewidth=1, linestyle=":")
        for number, half in enumerate(("develop", "report")):
            own = rows_where(rows, kind=kind, half=half, best_known=True)
            if len(own):
                _draw_bins(axis, own, COLORS[1 - number], half, 0.004 * (2 * number - 1))
        axis.set(
            xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xlabel="said: probability of being the best", title=KINDS[kind]
        )
        axis.grid(alpha=0.3)
        axis.legend(loc="upper left", fontsize=8)
    axes[0, 0].set_ylabel("seen: share that is the best")
    return figure


def _draw_bins(axis: Axes, rows: pd.DataFrame, color: str, half: str, aside: float) -> None:
    """One point per bin with a 95% bar, a little aside so that bars do not lie on each other."""
    bins = calibration(rows)
    said, seen = np.array([found.said for found in bins]), np.array([found.best / found.count for found in bins])
    low, high = np.array([found.interval for found in bins]).T
    axis.errorbar(
        said + aside, seen, [seen - low, high - seen], fmt="o", color=color, ms=5, capsize=2, label=f"{half} half"
    )


def _picks(rows: pd.DataFrame) -> Figure:
    """Mean loss of what is deployed, by case and method; 1 is what keeping the behaviour loses."""
    cases = list(dict.fromkeys(column(rows, "case")))
    figure, axis = plt.subplots(figsize=(9, 4), layout="constrained")
    places = {name: number for number, name in enumerate(cases)}
    for number, method in enumerate(METHODS):
        found = {name: Picks.of(own, method) for (name,), own in groups(rows, "case")}
        points = {places[name]: picks.regret for name, picks in found.items() if picks is not None}
        if not points:
            continue
        aside = 0.18 * (number - (len(METHODS) - 1) / 2)
        axis.bar([place + aside for place in points], list(points.values()), 0.17, color=COLORS[number], label=method)
    axis.axhline(1.0, color="#999999", linewidth=1, linestyle=":")
    axis.set_xticks(range(len(cases)), cases)
    axis.set_ylabel("loss of what is deployed (keeping: 1)")
    axis.grid(alpha=0.3, axis="y")
    axis.legend(fontsize=8)
    return figure
