"""The error over time from each start."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # before pyplot: figures go to files, and a machine without a screen must do

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from gradientdice_studies.frames import column, groups
from gradientdice_studies.store import ResultStore


def draw_all(store: ResultStore, frame: pd.DataFrame) -> dict[str, Path]:
    """Writes the figure as PNG and PDF; name -> PNG."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.9, column(frame, "perturbation").nunique()))
    for axis, ((learner,), rows) in zip(axes, groups(frame, "learner"), strict=True):
        for colour, ((size,), path) in zip(colours, groups(rows, "perturbation"), strict=True):
            label = "at the point" if size == 0 else f"{size:.0e} away"
            axis.plot(path["step"], path["error"], color=colour, label=label, linestyle="--" if size == 0 else "-")
        axis.set(title=learner, xlabel="step", xscale="log")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    axes[0].set_ylabel("MSE(τ)")
    figure.suptitle("Descent-ascent from τ = 0, f = 0, η = −1: a stationary point of GenDICE alone")
    return store.write_figures({"hard_example": figure})
