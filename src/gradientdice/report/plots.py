"""An estimate as pictures."""

from __future__ import annotations

import math
import textwrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gradientdice.evaluation.estimate import MEAN_REWARD, NOT_THE_VALUE, Estimate
from gradientdice.report.drawings import (
    draw_intervals,
    draw_map,
    draw_parts,
    draw_profile,
    draw_range,
    draw_ratio,
    draw_shares,
)
from gradientdice.report.theme import ACCENT, PANEL_SIZE, SOFT, NotebookFigure, styled
from gradientdice.statistics.footprint import Movement, Profile, StateMap


def estimate_figure(estimate: Estimate) -> Figure:
    """The value beside the behaviour's, and the ratio's distribution. Needs no screen and no pyplot."""
    width, height = PANEL_SIZE
    with styled():
        figure = NotebookFigure(figsize=(2 * width, height))
        if estimate.ratio is None or not np.isfinite(estimate.ratio).all():
            figure.set_size_inches(width, height)
            draw_value(figure.subplots(), estimate)
            return figure
        left, right = figure.subplots(1, 2)
        draw_value(left, estimate)
        draw_ratio(right, estimate.ratio)
    return figure


def draw_value(axis: Axes, estimate: Estimate) -> None:
    """The estimate and the behaviour's value, each with its interval."""
    name, value, interval = behavior_row(estimate)
    ends = [estimate.interval or (np.nan, np.nan), interval or (np.nan, np.nan)]
    values = np.array([estimate.value, value])
    draw_intervals(axis, ["this policy", name], values, np.array(ends), [ACCENT, SOFT])
    if estimate.behavior is None:
        # Longer than other names, and no part of it may be missing.
        axis.set_yticks([1, 0], ["this policy", f"{MEAN_REWARD}\n{textwrap.fill(f'({NOT_THE_VALUE})', 24)}"])
    axis.set_xlabel(criterion(estimate.discount))


def criterion(discount: float) -> str:
    """What a value is a value of: below discount 1 it is (1−γ)-normalised, a mean over steps."""
    if discount == 0:
        return "expected immediate reward"
    return "average reward per step" if discount == 1 else f"reward per step, discounted by {discount:g}"


def behavior_row(estimate: Estimate) -> tuple[str, float, tuple[float, float] | None]:
    """Name, value and interval beside the estimate: the behaviour's, or the mean logged reward where it has none."""
    if estimate.behavior is None:
        return f"{MEAN_REWARD} ({NOT_THE_VALUE})", estimate.behavior_mean, None
    return "the behaviour", estimate.behavior.value, estimate.behavior.interval


def value_figure(estimate: Estimate) -> Figure:
    """The same above where the interval lies in all that is possible."""
    possible = estimate.possible
    with styled():
        if not (math.isfinite(possible.low) and math.isfinite(possible.high) and possible.low < possible.high):
            figure = NotebookFigure(figsize=PANEL_SIZE)
            draw_value(figure.subplots(), estimate)
            return figure
        figure = NotebookFigure(figsize=PANEL_SIZE)
        upper, lower = figure.subplots(2, 1, height_ratios=(5, 1))
        draw_value(upper, estimate)
        draw_range(lower, (possible.low, possible.high), estimate.interval or (estimate.value, estimate.value))
    return figure


def ratio_figure(ratio: np.ndarray) -> Figure:
    """The ratio's distribution."""
    with styled():
        figure = NotebookFigure(figsize=PANEL_SIZE)
        draw_ratio(figure.subplots(), ratio)
    return figure


def profile_figure(profile: Profile, label: str) -> Figure:
    """Shares over the steps of an episode, or along the log."""
    with styled():
        figure = NotebookFigure(figsize=PANEL_SIZE)
        draw_profile(figure.subplots(), profile.edges, profile.logged, profile.target, profile.error, label)
    return figure


def movement_figure(movements: tuple[Movement, ...], *, shares: bool) -> Figure:
    """States or actions, from the log to the policy."""
    width, height = PANEL_SIZE
    with styled():
        # Rows of a constant height, as in a table.
        figure = NotebookFigure(figsize=(width, max(height, 0.7 + 0.24 * len(movements))))
        logged, target = np.array([[move.logged, move.target] for move in movements]).T
        draw_shares(figure.subplots(), [move.where for move in movements], logged, target, shares=shares)
    return figure


def map_figure(states: StateMap) -> Figure:
    """Where the policy goes in state space."""
    width, height = PANEL_SIZE
    with styled():
        if len(states.columns) == 1:
            figure = NotebookFigure(figsize=PANEL_SIZE)
            draw_profile(figure.subplots(), states.edges[0], states.logged, states.target, None, states.names[0])
            return figure
        figure = NotebookFigure(figsize=(width, 1.35 * height))
        edges = states.edges[0], states.edges[1]
        draw_map(figure.subplots(), edges, states.logged, states.target, (states.names[0], states.names[1]))
    return figure


def correction_figure(estimate: Estimate, correction: float) -> Figure:
    """What Q alone says, and the value with what the rows add."""
    ends = np.array([(np.nan, np.nan), estimate.interval or (np.nan, np.nan)])
    with styled():
        figure = NotebookFigure(figsize=(PANEL_SIZE[0], 0.7 * PANEL_SIZE[1]))
        values = np.array([estimate.value - correction, estimate.value])
        draw_intervals(figure.subplots(), ["Q alone", "corrected"], values, ends, [SOFT, ACCENT])
    return figure


def interval_figure(parts: dict[str, float]) -> Figure:
    """What an interval's half-width is made of."""
    width, _ = PANEL_SIZE
    with styled():
        figure = NotebookFigure(figsize=(width, 0.4 + 0.36 * len(parts)))
        draw_parts(figure.subplots(), list(parts), np.array(list(parts.values())))
    return figure
