"""Return distributions as pictures."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from gradientdice.evaluation.returns.result import ReturnDistribution
from gradientdice.report.theme import ACCENT, SOFT, WARM, NotebookFigure, styled


@styled()
def return_figure(found: ReturnDistribution) -> Figure:
    """The distribution function with its band, the mean and the mean of the worst 5%. Needs no screen and no pyplot."""
    figure = NotebookFigure(figsize=(6.4, 3.8))
    axis = figure.subplots()
    points, cdf = found.function.points, found.function.cdf
    margin = 0.04 * (points[-1] - points[0] or 1.0)
    left, right = points[0] - margin, points[-1] + margin
    if found.band is not None:
        band = found.band
        axis.fill_between(
            np.concatenate([[left], band.points, [right]]),
            np.concatenate([[0.0], band.low, band.low[-1:]]),
            np.concatenate([[min(1.0, band.half_width)], band.high, [1.0]]),
            step="post",
            color=ACCENT,
            alpha=0.18,
            linewidth=0,
            label=f"{found.confidence:.0%} band",
        )
    shown = "target policy" if found.source == "episodes" else "target policy, in a model"
    axis.step(
        np.concatenate([[left], points, [right]]),
        np.concatenate([[0.0], cdf, [1.0]]),
        where="post",
        color=ACCENT,
        label=shown,
    )
    axis.axvline(found.mean, color=WARM, linestyle="--", label=f"mean {found.mean:.4g}")
    tail = found.cvar(0.05)
    axis.axvline(tail, color=SOFT, linestyle=":", label=f"mean of the worst 5%: {tail:.4g}")
    name = "total of an episode" if found.discount == 1 else f"return at discount {found.discount:g}"
    axis.set(xlabel=name, ylabel="probability of at most this", xlim=(left, right), ylim=(-0.02, 1.02))
    axis.set_title(f"verdict: {found.verdict}", fontsize=9, color=SOFT, loc="left")
    axis.legend(loc="best")
    axis.grid()
    return figure
