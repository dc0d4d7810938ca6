"""An estimate as pictures."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gradientdice.evaluation.estimate import Estimate

BLUE, GREY, ORANGE = "#0072B2", "#777777", "#D55E00"


def estimate_figure(estimate: Estimate) -> Figure:
    """The value beside the behaviour's, and the ratio's distribution. Needs no screen and no pyplot."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.3))
    draw_value(left, estimate)
    draw_ratio(right, estimate)
    return figure


def draw_value(axis: Axes, estimate: Estimate) -> None:
    """The estimate with its interval, and the behaviour's value as a line with its own.

    At discount 1, and where the log has no episodes, the line is the mean logged reward.
    """
    if estimate.interval is not None:
        low, high = estimate.interval
        axis.errorbar(
            [0], [estimate.value], [[estimate.value - low], [high - estimate.value]], fmt="o", color=BLUE, capsize=6
        )
    else:
        axis.plot([0], [estimate.value], "o", color=BLUE)
    behavior = estimate.behavior
    if behavior is None or estimate.discount == 1:
        axis.axhline(estimate.behavior_mean, color=GREY, linestyle="--", label="mean logged reward")
    else:
        axis.axhline(behavior.value, color=GREY, linestyle="--", label="behaviour")
        if behavior.interval is not None:
            axis.axhspan(*behavior.interval, color=GREY, alpha=0.2, linewidth=0)
    axis.annotate(f"{estimate.value:.4g}", (0, estimate.value), xytext=(10, 0), textcoords="offset points", va="center")
    axis.set_xlim(-1, 1)
    axis.set_xticks([0], ["target policy"])
    axis.set_ylabel("value")
    axis.legend(fontsize=8)
    axis.grid(alpha=0.3, axis="y")


def draw_ratio(axis: Axes, estimate: Estimate) -> None:
    """How the ratio is distributed over the log; the ends are gathered into the outer bars."""
    if estimate.ratio is None:
        axis.text(0.5, 0.5, "this estimator has no ratio", ha="center", va="center", transform=axis.transAxes)
        axis.set_axis_off()
        return
    low, high = np.quantile(estimate.ratio, [0.001, 0.999])
    edges = np.linspace(min(low, 0.0), max(high, 1.0), 41)
    axis.hist(np.clip(estimate.ratio, edges[0], edges[-1]), bins=edges.tolist(), color=BLUE, alpha=0.8)
    axis.axvline(1.0, color=ORANGE, linestyle="--", label="as often as logged")
    axis.set_yscale("log")
    axis.set(xlabel="ratio: how much oftener the target goes there", ylabel="transitions")
    axis.legend(fontsize=8)
    axis.grid(alpha=0.3)
