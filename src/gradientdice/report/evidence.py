"""The evidence as pictures: what is drawn for an estimate, with a caption and a description for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from gradientdice.evaluation.estimate import Estimate
from gradientdice.report.digits import figure, known_to, percent
from gradientdice.report.plots import (
    behavior_row,
    correction_figure,
    interval_figure,
    map_figure,
    movement_figure,
    profile_figure,
    ratio_figure,
    value_figure,
)
from gradientdice.report.theme import inline_svg
from gradientdice.statistics.footprint import Footprint, Movement, Profile, StateMap

# A correction of a smaller part of the standard error is not shown.
SMALL_CORRECTION = 0.05
# Shares of actions that are uncertain by more than this are said to be, and unlogged steps from this share on.
ROUGH, MOST_UNLOGGED = 0.02, 0.05


@dataclass(frozen=True)
class Picture:
    """A picture of a page.

    Attributes:
        title: what it answers.
        caption: how to read it.
        svg: the picture, an element with its own text alternative.
    """

    title: str
    caption: str
    svg: str

    @classmethod
    def of(cls, name: str, title: str, caption: str, drawn: Figure, description: str) -> Picture:
        """From a figure; `name` is different for each picture of a page."""
        return cls(title, caption, inline_svg(drawn, name, f"{title}: {description}"))


def value_picture(estimate: Estimate) -> Picture:
    """The picture of the first screen."""
    name, value, interval = behavior_row(estimate)
    half = None if estimate.interval is None else (estimate.interval[1] - estimate.interval[0]) / 2
    parts = [f"this policy {_with_ends(estimate.value, estimate.interval, half)}"]
    parts.append(f"{name} {_with_ends(value, interval, half)}")
    parts.append(f"possible are {figure(estimate.possible.low)} to {figure(estimate.possible.high)}")
    return Picture.of("value", "The value and its interval", "", value_figure(estimate), "; ".join(parts) + ".")


def pictures(estimate: Estimate) -> list[Picture]:
    """The evidence, the most telling first; what is not known is left out."""
    found = []
    footprint = estimate.footprint
    found += place_pictures(estimate)
    if estimate.ratio is not None and np.isfinite(estimate.ratio).all():
        found.append(_ratio(estimate.ratio))
    if footprint is not None:
        found += _times(footprint)
    return found + _sizes(estimate) + _terms(estimate)


def place_pictures(estimate: Estimate, who: str = "the policy") -> list[Picture]:
    """Where the policy goes and what it does; `who` is what the titles call it."""
    footprint, found = estimate.footprint, []
    if footprint is None:
        return []
    if footprint.states is not None:
        found.append(_state_map(footprint.states, who))
    elif _moved(estimate.movements):
        found.append(
            _moves(
                "states",
                f"Where {who} goes",
                estimate.movements,
                "Share of the steps in the states where it changes most.",
            )
        )
    if len(footprint.actions) > 1 and footprint.action_shares:
        found.append(_moves("actions", f"What {who} does", footprint.actions, _actions_caption(footprint)))
    return found


def _actions_caption(footprint: Footprint) -> str:
    """How to read the shares of actions, and how uncertain they are."""
    caption = "Share of the steps with each action, in the log and under the policy."
    unlogged, distance = footprint.unlogged or 0.0, footprint.action_distance or 0.0
    if unlogged > MOST_UNLOGGED:
        return (
            f"{caption} {percent(unlogged)} of the policy's steps were never logged, so that the states it visits, and "
            "with them these shares, are uncertain by about that much."
        )
    if distance > ROUGH:
        return (
            f"{caption} The ratio is only roughly known, so that the states the policy visits, and with them these "
            f"shares, are uncertain by about {percent(distance)} of the steps."
        )
    return caption


def _moved(movements: tuple[Movement, ...]) -> bool:
    """Whether the policy goes elsewhere: in a bandit's log, for one, it meets the states that the log has."""
    return max((abs(move.target - move.logged) for move in movements), default=0.0) > 0.005


def _state_map(states: StateMap, who: str) -> Picture:
    outside = float(states.target[states.logged < 1e-4].sum())
    moved = float(np.abs(states.target - states.logged).sum()) / 2
    caption = (
        f"{' and '.join(states.names)}: where log and policy differ most. "
        f"{percent(moved)} of the policy's steps would have to move to match the log."
    )
    description = f"{caption} {percent(outside)} of them lie in cells with less than 0.01% of the log."
    return Picture.of("states", f"Where {who} goes", caption, map_figure(states), description)


def _moves(name: str, title: str, movements: tuple[Movement, ...], caption: str) -> Picture:
    listed = ", ".join(f"{move.where} {percent(move.logged)} to {percent(move.target)}" for move in movements)
    return Picture.of(name, title, caption, movement_figure(movements, shares=True), f"from log to policy, {listed}.")


def _ratio(ratio: np.ndarray) -> Picture:
    middle, high = (figure(float(number)) for number in np.quantile(ratio, [0.5, 0.99]))
    caption = (
        f"Half of the rows have a ratio below {middle}, 99% below {high}; the largest is {figure(float(ratio.max()))}. "
        "Rows far to the right carry the answer."
    )
    return Picture.of("ratio", "How the rows are weighted", caption, ratio_figure(ratio), caption)


def _times(footprint: Footprint) -> list[Picture]:
    found = []
    if footprint.by_step is not None:
        caption = "Share of the log, of the policy's weight and of the error, by time in the episode."
        found.append(_profile("steps", "When in the episode", footprint.by_step, "step of the episode", caption))
    caption = "The same along the rows of the log: peaks are a few rows that much hangs on."
    found.append(_profile("rows", "Where in the log", footprint.along_log, "row of the log", caption))
    return found


def _profile(name: str, title: str, profile: Profile, label: str, caption: str) -> Picture:
    heaviest = int(np.argmax(profile.target))
    low, high = (figure(round(float(edge))) for edge in profile.edges[heaviest : heaviest + 2])
    description = f"the policy's weight is largest from {label} {low} to {high}, {percent(float(profile.target.max()))}"
    if profile.error is not None:
        worst = int(np.argmax(profile.error))
        low, high = (figure(round(float(edge))) for edge in profile.edges[worst : worst + 2])
        description += f"; the error from {low} to {high}, {percent(float(profile.error[worst]))}"
    return Picture.of(name, title, caption, profile_figure(profile, label), f"{description}.")


def _sizes(estimate: Estimate) -> list[Picture]:
    """What the interval and the value are made of, where there is more than one part."""
    found = []
    if estimate.sources is not None and estimate.interval is not None:
        causes = estimate.sources.room.causes(estimate.confidence)
        half = (estimate.interval[1] - estimate.interval[0]) / 2
        noise = max(half - sum(causes.values()), 0.0)
        if causes and noise > 0:
            parts = {"sampling noise": noise, **causes}
            listed = ", ".join(f"{name} {figure(size, 2)}" for name, size in parts.items())
            caption = f"The parts of its half-width, {figure(half, 2)}. More data shrink the first."
            drawn = interval_figure(parts)
            found.append(Picture.of("interval", "What the interval has room for", caption, drawn, f"{listed}."))
    return found


def _terms(estimate: Estimate) -> list[Picture]:
    """What the rows add to what Q alone says; nothing where that is next to nothing, as with a table, or not known."""
    correction = None if estimate.footprint is None else estimate.footprint.correction
    error = estimate.standard_error
    if correction is None or error is None or abs(correction) < SMALL_CORRECTION * error:
        return []
    alone = known_to(estimate.value - correction, error)
    caption = (
        f"Q alone says {alone} of the initial states. The logged rows, weighted by the ratio, correct that by "
        f"{known_to(correction, error, signed=True)}. One of many standard errors says that Q fits badly."
    )
    return [Picture.of("terms", "What the rows correct", caption, correction_figure(estimate, correction), caption)]


def _with_ends(value: float, interval: tuple[float, float] | None, half: float | None) -> str:
    text = known_to(value, half)
    return text if interval is None else f"{text} ({known_to(interval[0], half)} to {known_to(interval[1], half)})"
