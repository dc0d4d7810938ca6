"""The pictures' parts: each draws plain arrays on a matplotlib axis, in the style of `theme.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import FuncFormatter, MaxNLocator

from gradientdice.report.digits import figure, percent
from gradientdice.report.theme import ACCENT, INK, LINE, SOFT, WARM

LONGEST_NAME = 24
# The diameter of a map's largest point, in points.
LARGEST_POINT = 8


def draw_intervals(
    axis: Axes,
    names: Sequence[str],
    values: Float[np.ndarray, " k"],
    intervals: Float[np.ndarray, "k 2"],
    colors: Sequence[str],
    outer: Float[np.ndarray, "k 2"] | None = None,
) -> None:
    """A forest plot: a point with its interval for each name, the first at the top.

    Args:
        axis: to draw on.
        names: one for each row.
        values: the points.
        intervals: their ends; NaN where there is none.
        colors: of each row.
        outer: wider intervals, drawn as thin lines; none if left out.
    """
    places = np.arange(len(names))[::-1]
    if outer is not None:
        for place, ends, color in zip(places, outer, colors, strict=True):
            axis.plot(ends, [place, place], color=color, linewidth=1)
    for place, value, (low, high), color in zip(places, values, intervals, colors, strict=True):
        if np.isfinite(low) and np.isfinite(high):
            axis.plot([low, high], [place, place], color=color, linewidth=3, solid_capstyle="round")
        axis.plot([value], [place], "o", color=color, markersize=8)
    axis.set_yticks(places, [shortened(name) for name in names])
    axis.tick_params(axis="y", length=0, labelcolor=INK)
    axis.set_ylim(-0.6, len(names) - 0.4)
    axis.spines["left"].set_visible(False)
    axis.grid(axis="x")
    _few_ticks(axis)


def draw_line(axis: Axes, place: float) -> None:
    """A vertical line to compare with, as 0 is for differences."""
    axis.axvline(place, color=SOFT, linewidth=1, linestyle=(0, (4, 3)), zorder=0.5)


def draw_range(axis: Axes, possible: tuple[float, float], interval: tuple[float, float]) -> None:
    """Where an interval lies within all that is possible: a thin bar."""
    low, high = possible
    axis.barh([0], [high - low], left=low, height=0.5, color=LINE)
    # An interval that is too short to be seen is still shown where it lies.
    width = max(interval[1] - interval[0], 0.004 * (high - low))
    axis.barh([0], [width], left=(sum(interval) - width) / 2, height=1.0, color=ACCENT)
    axis.set_ylim(-0.8, 0.8)
    axis.set_xticks([low, high], [figure(end if abs(end) > 0.001 * (high - low) else 0.0) for end in (low, high)])
    axis.set_yticks([])
    for side in ("left", "bottom"):
        axis.spines[side].set_visible(False)
    axis.tick_params(axis="x", length=0)
    axis.set_title("within what the logged rewards allow", fontsize=9, color=SOFT, loc="left", pad=2)


def draw_ratio(axis: Axes, ratio: Float[np.ndarray, " n"]) -> None:
    """How the ratio is distributed over the log; the ends are gathered into the outer bars."""
    low, high = np.quantile(ratio, [0.001, 0.999])
    edges = np.linspace(min(low, 0.0), max(high, 1.0), 41)
    counts, _ = np.histogram(np.clip(ratio, edges[0], edges[-1]), bins=edges)
    axis.stairs(counts, edges, fill=True, color=ACCENT)
    axis.axvline(1.0, color=WARM, linewidth=1.5, linestyle=(0, (4, 3)))
    axis.annotate(
        "as often as logged",
        (1.0, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(4, -2),
        textcoords="offset points",
        va="top",
        color=WARM,
        fontsize=9,
    )
    axis.set_yscale("log")
    axis.set_ylim(0.5, max(2.0, 4 * counts.max()))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda count, _: figure(int(count)) if count >= 1 else ""))
    axis.set(xlabel="ratio: how much more often the policy is there", ylabel="rows")
    axis.minorticks_off()


def draw_profile(
    axis: Axes,
    edges: Float[np.ndarray, " edges"],
    logged: Float[np.ndarray, " b"],
    target: Float[np.ndarray, " b"],
    error: Float[np.ndarray, " b"] | None,
    label: str,
) -> None:
    """Shares over bins: of the log as a surface, of the policy's mass and of the error as lines."""
    axis.stairs(logged, edges, fill=True, color=LINE, label="the log")
    axis.stairs(target, edges, color=ACCENT, linewidth=2, label="the policy")
    if error is not None:
        axis.stairs(error, edges, color=WARM, linewidth=1.5, label="the error")
    axis.set_xlim(edges[0], edges[-1])
    axis.set_xlabel(label)
    axis.set_ylim(bottom=min(0.0, float(target.min())))
    _percent_axis(axis.yaxis)
    _few_ticks(axis)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda place, _: figure(float(place))))
    _legend_above(axis)


def draw_shares(
    axis: Axes, names: Sequence[str], logged: Float[np.ndarray, " k"], target: Float[np.ndarray, " k"], *, shares: bool
) -> None:
    """A grey and a blue point for each name, joined: from the log to the policy.

    Args:
        axis: to draw on.
        names: one for each row, the first at the top.
        logged: in the log.
        target: under the policy.
        shares: whether these are shares, shown as percentages from 0.
    """
    places = np.arange(len(names))[::-1]
    axis.hlines(places, logged, target, color=LINE, linewidth=3)
    axis.plot(logged, places, "o", color=SOFT, markersize=7, label="the log")
    axis.plot(target, places, "o", color=ACCENT, markersize=7, label="the policy")
    axis.set_yticks(places, [shortened(name) for name in names])
    axis.tick_params(axis="y", length=0, labelcolor=INK)
    axis.set_ylim(-0.7, len(names) - 0.3)
    axis.spines["left"].set_visible(False)
    axis.grid(axis="x")
    if shares:
        low, high = min(0.0, float(np.min(target))), float(np.max([logged, target]))
        margin = 0.06 * (high - low)
        axis.set_xlim(low - margin, high + margin)
        _percent_axis(axis.xaxis)
    _few_ticks(axis)
    _legend_above(axis)


def draw_map(
    axis: Axes,
    edges: tuple[Float[np.ndarray, " across"], Float[np.ndarray, " up"]],
    logged: Float[np.ndarray, "b c"],
    target: Float[np.ndarray, "b c"],
    labels: tuple[str, str],
) -> None:
    """Two coordinates of the state: grey cells are the log's, the areas of blue points the policy's."""
    across, up = (0.5 * (own[1:] + own[:-1]) for own in edges)
    width, height = (own[1] - own[0] for own in edges)
    # Few levels, each of them one path: a cell of its own for each would make the page heavy.
    levels = np.ceil(4 * np.sqrt(logged / logged.max())).astype(int)
    for level in range(1, 5):
        xs, ys = np.nonzero(levels == level)
        cells = _rectangles(across[xs] - width / 2, up[ys] - height / 2, width, height)
        axis.add_patch(PathPatch(cells, facecolor=SOFT, alpha=0.16 * level, linewidth=0))
    axis.plot([], [], "s", color=SOFT, alpha=0.5, markersize=8, label="the log")
    axis.plot([], [], "o", color=ACCENT, markersize=6, label="the policy")
    # A few sizes of points, for the same reason; the smallest shares, of points below a pixel, are left out.
    sizes = np.round(LARGEST_POINT * np.sqrt(np.maximum(target, 0.0) / target.max())).astype(int)
    for size in range(1, LARGEST_POINT + 1):
        xs, ys = np.nonzero(sizes == size)
        axis.plot(across[xs], up[ys], "o", color=ACCENT, markersize=size, markeredgewidth=0)
    axis.set_xlim(edges[0][0], edges[0][-1])
    axis.set_ylim(edges[1][0], edges[1][-1])
    axis.set(xlabel=labels[0], ylabel=labels[1])
    _few_ticks(axis)
    axis.yaxis.set_major_locator(MaxNLocator(4))
    _legend_above(axis)


def _rectangles(left: np.ndarray, bottom: np.ndarray, width: float, height: float) -> Path:
    """Rectangles of one size as one path."""
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height], [0, 0]])
    vertices = np.column_stack([left, bottom])[:, None, :] + corners
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(left)
    return Path(vertices.reshape(-1, 2), codes)


def draw_parts(axis: Axes, names: Sequence[str], sizes: Float[np.ndarray, " k"]) -> None:
    """Bars to the right, each with its size at its end; the first at the top."""
    places = np.arange(len(names))[::-1]
    axis.barh(places, sizes, height=0.55, color=[ACCENT, *[WARM] * (len(names) - 1)])
    for place, size in zip(places, sizes, strict=True):
        _annotate_end(axis, size, place, figure(float(size), 2))
    axis.set_yticks(places, list(names))
    axis.tick_params(axis="y", length=0, labelcolor=INK)
    axis.set_ylim(-0.6, len(names) - 0.4)
    axis.set_xlim(0, 1.2 * float(np.max(sizes)))
    axis.set_xticks([])
    for side in ("left", "bottom"):
        axis.spines[side].set_visible(False)


def _annotate_end(axis: Axes, x: float, y: float, text: str) -> None:
    """A text to the right of a bar's end."""
    axis.annotate(text, (x, y), (4, 0), textcoords="offset points", va="center", fontsize=9)


def draw_probabilities(
    axis: Axes, names: Sequence[str], probabilities: Float[np.ndarray, " k"], kept: Bool[np.ndarray, " k"]
) -> None:
    """How probable it is that each policy is the best; those that may be are coloured."""
    places = np.arange(len(names))[::-1]
    axis.barh(places, probabilities, height=0.55, color=[ACCENT if may else SOFT for may in kept])
    for place, share in zip(places, probabilities, strict=True):
        _annotate_end(axis, share, place, percent(float(share)))
    axis.set_yticks(places, [shortened(name) for name in names])
    axis.tick_params(axis="y", length=0, labelcolor=INK)
    axis.set_ylim(-0.6, len(names) - 0.4)
    axis.set_xlim(0, 1.15)
    axis.set_xticks([0, 0.5, 1])
    _percent_axis(axis.xaxis, ticks=False)
    axis.spines["left"].set_visible(False)


def draw_curve(
    axis: Axes,
    discounts: Float[np.ndarray, " k"],
    values: Float[np.ndarray, " k"],
    intervals: Float[np.ndarray, "k 2"] | None,
    band: Float[np.ndarray, "k 2"] | None,
) -> None:
    """The value over discounts, evenly spaced and named; a band that holds at all of them, and single intervals."""
    order = np.argsort(discounts)
    places = np.arange(len(order))
    if band is not None:
        axis.fill_between(places, *band[order].T, color=ACCENT, alpha=0.18, linewidth=0, label="all at once")
    if intervals is not None:
        low, high = intervals[order].T
        axis.vlines(places, low, high, color=ACCENT, linewidth=3, label="each alone")
    axis.plot(places, values[order], "o-", color=ACCENT, markersize=7, linewidth=1.5)
    axis.set_xticks(places, [_horizon(float(discounts[k])) for k in order])
    axis.set(xlabel="discount, and how many steps that looks ahead", ylabel="value")
    axis.set_xlim(-0.4, len(order) - 0.6)
    axis.grid(axis="y")
    axis.yaxis.set_major_locator(MaxNLocator(5))
    if band is not None or intervals is not None:
        _legend_above(axis)


def _horizon(discount: float) -> str:
    """A discount with the mean number of steps that it looks ahead, 1 / (1 − γ)."""
    steps = "∞" if discount == 1 else figure(1 / (1 - discount), 2)
    return f"{discount:g}\n{steps}"


def shortened(name: str) -> str:
    """A name that leaves room for the picture."""
    name = name.replace("$", r"\$")  # matplotlib would set what is between two of them as mathematics
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _few_ticks(axis: Axes) -> None:
    axis.xaxis.set_major_locator(MaxNLocator(5))


def _percent_axis(axis, *, ticks: bool = True) -> None:
    if ticks:
        axis.set_major_locator(MaxNLocator(4))
    axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.3g}%".replace("-", "−")))


def _legend_above(axis: Axes) -> None:
    """A line of keys above the picture, where it hides nothing."""
    axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0, handlelength=1.2, columnspacing=1.2)
