"""Rankings, selections and curves over discounts as pictures."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gradientdice.evaluation.curve import DiscountCurve
from gradientdice.evaluation.ranking import Ranking
from gradientdice.evaluation.select import Selection
from gradientdice.report.drawings import draw_curve, draw_intervals, draw_line, draw_probabilities
from gradientdice.report.theme import ACCENT, PANEL_SIZE, SOFT, WARM, NotebookFigure, styled

# More policies than these are not drawn: the best ones are.
MOST = 20
DECISIONS = {"better": ACCENT, "worse": WARM, "undecided": SOFT}


def ranking_figure(ranking: Ranking) -> Figure:
    """The differences to the baseline beside how probably each policy is the best."""
    width, height = _size(ranking)
    with styled():
        figure = NotebookFigure(figsize=(2 * width, height))
        left, right = figure.subplots(1, 2)
        _draw_differences(left, ranking)
        _draw_best(right, ranking)
    return figure


def selection_figure(selection: Selection) -> Figure:
    """The differences to the baseline, those that are shown to be better in colour."""
    with styled():
        figure = NotebookFigure(figsize=_size(selection.ranking))
        _draw_differences(figure.subplots(), selection.ranking, selection.better)
    return figure


def differences_figure(ranking: Ranking) -> Figure:
    """The differences to the baseline: better, worse and undecided ones in colours of their own."""
    with styled():
        figure = NotebookFigure(figsize=_size(ranking))
        _draw_differences(figure.subplots(), ranking)
    return figure


def values_figure(ranking: Ranking) -> Figure:
    """The policies' values with their intervals, and the baseline's value as a line."""
    with styled():
        figure = NotebookFigure(figsize=_size(ranking))
        axis = figure.subplots()
        names = _shown(ranking)
        estimates = [ranking.estimates[name] for name in names]
        ends = np.array([estimate.interval or (np.nan, np.nan) for estimate in estimates])
        values = np.array([estimate.value for estimate in estimates])
        draw_line(axis, ranking.side.sources.value)
        draw_intervals(axis, names, values, ends, [ACCENT] * len(names))
        axis.set_xlabel(f"value; the line is {ranking.baseline_text}")
    return figure


def best_figure(ranking: Ranking) -> Figure:
    """How probably each policy is the best."""
    with styled():
        figure = NotebookFigure(figsize=_size(ranking))
        _draw_best(figure.subplots(), ranking)
    return figure


def curve_figure(curve: DiscountCurve) -> Figure:
    """The value over discounts, with a band that holds at all of them at once."""
    intervals = [estimate.interval for estimate in curve]
    known = [ends for ends in intervals if ends is not None]
    with styled():
        figure = NotebookFigure(figsize=(PANEL_SIZE[0], 1.2 * PANEL_SIZE[1]))
        draw_curve(
            figure.subplots(),
            np.array(curve.discounts, dtype=float),
            np.array([estimate.value for estimate in curve]),
            np.array(known) if len(known) == len(intervals) else None,
            None if curve.band is None else np.array(curve.band),
        )
    return figure


def _size(ranking: Ranking) -> tuple[float, float]:
    """Rows of a constant height, as in a table."""
    width, height = PANEL_SIZE
    return width, max(height, 0.7 + 0.26 * len(_shown(ranking)))


def _shown(ranking: Ranking) -> Sequence[str]:
    return ranking.names[:MOST]


def _draw_differences(axis: Axes, ranking: Ranking, colored: Collection[str] | None = None) -> None:
    """Thick lines are intervals of each difference, thin ones hold for all at once."""
    names = [name for name in _shown(ranking) if name != ranking.baseline]
    found = [ranking.differences[name] for name in names]
    if colored is None:
        colors = [DECISIONS[difference.decision] for difference in found]
    else:
        colors = [ACCENT if name in colored else SOFT for name in names]
    draw_line(axis, 0.0)
    draw_intervals(
        axis,
        names,
        np.array([difference.value for difference in found]),
        np.array([difference.interval for difference in found]),
        colors,
        outer=np.array([ranking.simultaneous[name] for name in names]),
    )
    axis.set_xlabel(f"difference to {ranking.baseline_text}")


def _draw_best(axis: Axes, ranking: Ranking) -> None:
    names = _shown(ranking)
    shares = np.array([ranking.probability_best[name] for name in names])
    draw_probabilities(axis, names, shares, np.array([name in ranking.best_set for name in names]))
    axis.set_xlabel("probability of being the best")
