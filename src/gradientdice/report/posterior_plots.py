"""Posteriors as pictures."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gradientdice.evaluation.posterior.result import Posterior, PosteriorRanking
from gradientdice.report.theme import ACCENT, SOFT, WARM, NotebookFigure, styled


@styled()
def posterior_figure(posterior: Posterior) -> Figure:
    """The draws as a histogram, with their mean and 95% interval. Needs no screen and no pyplot."""
    figure = NotebookFigure(figsize=(6, 3.4))
    axis = figure.subplots()
    draw_posterior(axis, posterior)
    return figure


def draw_posterior(axis: Axes, posterior: Posterior) -> None:
    """A histogram of the draws; the few that lie far out are gathered into the outer bars."""
    left, right = np.quantile(posterior.draws, [0.001, 0.999]).tolist()
    if left == right:
        left, right = left - 0.5, right + 0.5
    edges = np.linspace(left, right, 51)
    axis.hist(np.clip(posterior.draws, edges[0], edges[-1]), bins=edges.tolist(), density=True, color=ACCENT, alpha=0.6)
    low, high = posterior.interval()
    axis.axvspan(low, high, color=ACCENT, alpha=0.12, linewidth=0, label="95% interval")
    axis.axvline(posterior.mean, color=ACCENT, label="mean")
    axis.axvline(posterior.value, color=WARM, linestyle="--", label="the log itself")
    axis.set(xlabel="value", ylabel="density")
    axis.set_title(f"verdict: {posterior.verdict}", fontsize=9, color=SOFT, loc="left")
    axis.legend()
    axis.grid()


@styled()
def ranking_figure(ranking: PosteriorRanking) -> Figure:
    """Means with 95% intervals, and each policy's probability of being the best; the highest mean on top."""
    table = ranking.table[::-1]
    figure = NotebookFigure(figsize=(9, 1.4 + 0.4 * len(table)))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.4, 1))
    places = np.arange(len(table))
    for place, name in zip(places, table["policy"], strict=True):
        inner, outer = ranking[name].interval(0.5), ranking[name].interval()
        left.plot(outer, [place, place], color=ACCENT, linewidth=1.5)
        left.plot(inner, [place, place], color=ACCENT, linewidth=5, solid_capstyle="butt")
    left.plot(table["mean"], places, "o", color="white", markeredgecolor=ACCENT, markersize=5)
    labels = zip(table["policy"], table["verdict"], strict=True)
    left.set_yticks(places, [name if verdict == "trust" else f"{name}\n({verdict})" for name, verdict in labels])
    left.set_title(f"verdict: {ranking.verdict}", fontsize=9, color=SOFT, loc="left")
    left.set_xlabel("value: mean, 50% and 95% intervals")
    left.grid(axis="x")
    right.barh(places, table["probability_best"], color=SOFT, height=0.6)
    for place, share in zip(places, table["probability_best"], strict=True):
        text = "<1%" if 0 < share < 0.01 else ">99%" if 0.99 < share < 1 else f"{share:.0%}"
        right.annotate(text, (share, place), xytext=(4, 0), textcoords="offset points", va="center")
    right.set_xlim(0, 1.2)
    right.set_xticks(np.linspace(0, 1, 6))
    right.set_xlabel("probability of being the best")
    right.grid(axis="x")
    return figure
