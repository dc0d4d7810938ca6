"""Values by segment as a picture."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from gradientdice.evaluation.segments.result import Segments
from gradientdice.report.theme import ACCENT, SOFT, WARM, NotebookFigure, styled


@styled()
def segments_figure(segments: Segments) -> Figure:
    """Each group's value with its interval, and its part of the whole. Needs no screen and no pyplot."""
    groups = segments.groups[::-1]
    figure = NotebookFigure(figsize=(9, 1.6 + 0.4 * len(groups)))
    left, right = figure.subplots(1, 2, sharey=True)
    places = np.arange(len(groups))
    value, low, high = np.array([(group.value, group.low, group.high) for group in groups]).T
    left.errorbar(value, places, xerr=[value - low, high - value], fmt="o", color=ACCENT, capsize=4)
    part, low, high = np.array(
        [(group.contribution, group.contribution_low, group.contribution_high) for group in groups]
    ).T
    right.barh(
        places, part, xerr=[part - low, high - part], color=ACCENT, alpha=0.5, height=0.6, ecolor=SOFT, capsize=3
    )
    right.axvline(0.0, color=SOFT, linewidth=0.8)
    left.set_yticks(places, [f"{group.group} ({group.share:.0%})" for group in groups])
    for axis in (left, right):
        axis.grid(axis="x")
        axis.locator_params(axis="x", nbins=6)
    if segments.of == "starts":
        left.axvline(segments.total, color=WARM, linestyle="--", label="whole")
        left.legend()
        left.set(xlabel="value when the target starts there", ylabel="group (share of starts)")
    else:
        left.set(xlabel="reward per step there", ylabel="group (share of the target's time)")
    right.set_xlabel(f"part of the whole, {segments.total:.4g}")
    left.set_title(f"verdict: {segments.verdict}", fontsize=9, color=SOFT, loc="left")
    return figure
