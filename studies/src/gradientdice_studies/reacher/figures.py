"""Figure 4 in the paper's layout, and where the mean ratio starts and ends."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # before pyplot: figures go to files, and a machine without a screen must do

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from gradientdice_studies.boyan.figures import STYLES
from gradientdice_studies.reacher.analysis import Chosen, by_truth
from gradientdice_studies.reacher.grid import LEARNERS
from gradientdice_studies.reacher.protocols import DISCOUNTS
from gradientdice_studies.reacher.run import Results
from gradientdice_studies.store import ResultStore


def draw_all(store: ResultStore, results: Results) -> dict[str, Path]:
    """Writes every figure as PNG and PDF; name -> PNG."""
    chosen = by_truth(results.grid, "paper")
    figures = {"figure4": learning_curves(chosen), "mean_ratio": mean_ratios(chosen)}
    return store.write_figures(figures)


def learning_curves(chosen: dict[tuple[str, float], Chosen]) -> Figure:
    """MSE(ρ) of the three learners at the settings with the smallest true error: mean and one standard deviation."""
    figure, axes = plt.subplots(2, 3, figsize=(11, 6), layout="constrained", sharex=True)
    for axis, discount in zip(axes.ravel(), DISCOUNTS, strict=True):
        for learner in LEARNERS:
            errors = chosen[learner, discount].errors
            steps = np.arange(errors.shape[1]) * 10
            mean, spread = errors.mean(axis=0), errors.std(axis=0)
            axis.plot(steps, mean, label=learner, **STYLES[learner])
            low = np.maximum(mean - spread, mean / 10)
            axis.fill_between(steps, low, mean + spread, color=STYLES[learner]["color"], alpha=0.15, linewidth=0)
        axis.set(yscale="log", title=f"γ = {discount:g}")
        axis.grid(alpha=0.3)
    for axis in axes[1]:
        axis.set_xlabel("steps")
    for axis in axes[:, 0]:
        axis.set_ylabel("MSE(ρ)")
    axes[0, 0].legend(frameon=False)
    return figure


def mean_ratios(chosen: dict[tuple[str, float], Chosen]) -> Figure:
    """E[τ] of the same runs: it should be 1."""
    figure, axes = plt.subplots(2, 3, figsize=(11, 6), layout="constrained", sharex=True, sharey=True)
    for axis, discount in zip(axes.ravel(), DISCOUNTS, strict=True):
        axis.axhline(1, color="black", linewidth=0.8)
        for learner in LEARNERS:
            ratio = chosen[learner, discount].mean_ratio
            axis.plot(np.arange(ratio.shape[1]) * 10, np.median(ratio, axis=0), label=learner, **STYLES[learner])
        axis.set(title=f"γ = {discount:g}", ylim=(-0.2, 2.5))
        axis.grid(alpha=0.3)
    for axis in axes[1]:
        axis.set_xlabel("steps")
    for axis in axes[:, 0]:
        axis.set_ylabel("mean ratio (median run)")
    axes[0, 2].legend(frameon=False, loc="upper right")
    return figure
