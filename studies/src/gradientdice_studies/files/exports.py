"""An export: a log's rows as a table with its owner's own words and codes, and a policy as its owner writes it down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

import gradientdice as gd
from gradientdice.policies import Policy
from gradientdice_studies.files.domains import Domain, Log


@dataclass(frozen=True, eq=False)
class Coding:
    """What an export writes for states and actions, as its owner understands it.

    Attributes:
        states: what is written for each state, a row per state.
        words: the word of each action; None where actions are numbers.
        first: the number of the first action, where actions are numbers.
    """

    states: np.ndarray
    words: tuple[str, ...] | None
    first: int = 0

    def index(self, states: Any, data: Any) -> np.ndarray:
        """The numbers of the states that the library hands to a policy; states that nobody knows are the first."""
        given = np.asarray(states)
        if self.states.dtype.kind == "U":
            known = self.states[:, 0].tolist()
            names = _names(data, "state_names") or sorted(known)
            return np.array([known.index(name) if name in known else 0 for name in names])[given.ravel().astype(int)]
        rows = given.reshape(len(given), -1).astype(float)
        return np.abs(rows[:, None] - self.states.astype(float)).sum(axis=2).argmin(axis=1)


# (coding, the action of each state, the log) -> policy
Style = Callable[[Coding, np.ndarray, Any], Policy]


def probabilities(coding: Coding, rule: np.ndarray, data: Any) -> Policy:
    """A function to a table of probabilities, in the order of the log's `action_names` where it has words."""
    table = np.eye(int(rule.max(initial=2)) + 1)[rule]
    if coding.words is not None:
        names = _names(data, "action_names") or sorted(coding.words)
        columns = [coding.words.index(name) if name in coding.words else len(coding.words) for name in names]
        table = np.hstack([table, np.zeros((len(table), 1))])[:, columns]
    return gd.DiscretePolicy(lambda states: table[coding.index(states, data)], table.shape[1])


def redrawn(coding: Coding, rule: np.ndarray, data: Any) -> Policy:
    """Probabilities that are drawn anew at each call."""
    rng = np.random.default_rng(0)
    count = len(_names(data, "action_names") or range(3))
    return gd.DiscretePolicy(lambda states: rng.dirichlet(np.ones(count), size=len(states)), count)


def returns_words(coding: Coding, rule: np.ndarray, data: Any) -> Policy:
    """A rule that returns the word of an action."""
    words = np.array(coding.words)[rule]
    return gd.policy(lambda states: words[coding.index(states, data)])


def returns_codes(coding: Coding, rule: np.ndarray, data: Any, change: Callable[[Any], Any] = np.asarray) -> Policy:
    """A rule that returns the number of an action, and no word about how many there are."""
    names = _names(data, "action_names")
    codes = rule + coding.first
    if coding.words is not None and names:
        codes = np.array([names.index(word) for word in coding.words])[rule]
    codes = change(codes)
    return gd.policy(lambda states: codes[coding.index(states, data)])


def _names(data: Any, which: str) -> tuple[str, ...] | None:
    """The words that a log in memory or on disk has for its codes."""
    return getattr(data, which, None) or getattr(data, "books", {}).get(which)


@dataclass(frozen=True, eq=False)
class Export:
    """What a user has in hand.

    Attributes:
        frame: the rows.
        options: what is said about them to `gd.load` or `gd.scan`.
        coding: what states and actions are.
        style: how the policy is written down.
        files: where one log lies in several files, the rows of each.
        mean: the target that a policy of random probabilities has on average; None for the rule itself.
        valued: whether the policy has a value at all.
    """

    frame: pd.DataFrame
    options: dict[str, Any]
    coding: Coding
    style: Style = probabilities
    files: tuple[pd.DataFrame, ...] = ()
    mean: np.ndarray | None = None
    valued: bool = True


def export(
    domain: Domain,
    scan: bool,
    *,
    log: Log | None = None,
    order: str | None = "step",
    ends: bool = True,
    following: bool = False,
    states: np.ndarray | None = None,
    actions: str | None = None,
    style: Style = probabilities,
) -> Export:
    """The plain way: rows in order with a column of steps and one of ends; the arguments say what differs.

    A scan reads next states from the file, vectors as lists, and numbers.

    Args:
        domain: the place.
        scan: whether it is for `gd.scan`.
        log: other rows than the domain's own.
        order: the column of steps; None for none.
        ends: whether ends and time limits have columns.
        following: whether next states have columns.
        states: what is written for each state.
        actions: "words", "codes", "text" (codes as text) or "text from 1".
        style: how the policy is written down.
    """
    log = domain.log() if log is None else log
    actions = actions or ("codes" if domain.coded or scan else "words")
    if states is None:
        states = np.arange(len(domain.states))[:, None] if scan and domain.states.dtype.kind == "U" else domain.states
    coding = Coding(states, domain.actions if actions == "words" else None, int(actions == "text from 1"))
    codes = np.arange(len(domain.actions)) + coding.first
    labels = {"words": np.array(domain.actions), "codes": codes}.get(actions, codes.astype(str))
    # What an end leads to is not used; the state itself is written.
    after = np.where(log.ended, log.state, log.after)
    columns: dict[str, Any] = {"episodes": domain.columns["episodes"][0]}
    frame = pd.DataFrame({columns["episodes"]: log.episode})
    if order is not None:
        frame[order] = log.step
    _add_states(frame, columns, "states", domain.columns["states"], states[log.state], scan)
    if following or scan:
        names = tuple(f"{name}_after" for name in domain.columns["states"])
        _add_states(frame, columns, "next_states", names, states[after], scan)
    for name, values in (("actions", labels[log.action]), ("rewards", log.reward)):
        columns[name] = domain.columns[name][0]
        frame[columns[name]] = values
    if ends:
        columns["terminated"], frame["over"] = "over", log.ended.astype(int)
        if log.cut.any():
            columns["truncated"], frame["stopped"] = "stopped", log.cut.astype(int)
    # The names of text read from numbers are the owner's: numbers.
    understood = coding if states is domain.states or not _decimal(states) else replace(coding, states=_numbers(states))
    return Export(frame, {"columns": columns}, understood, style)


def _add_states(
    frame: pd.DataFrame, columns: dict[str, Any], name: str, names: tuple[str, ...], values: np.ndarray, scan: bool
) -> None:
    if scan and len(names) > 1:
        columns[name] = "_".join(names)
        frame[columns[name]] = list(values)
        return
    columns[name] = names[0] if len(names) == 1 else list(names)
    for column, name in enumerate(names):
        frame[name] = values[:, column]


def _decimal(states: np.ndarray) -> bool:
    return states.dtype.kind == "U" and all(text.replace(".", "").isdecimal() for text in states.ravel())


def _numbers(states: np.ndarray) -> np.ndarray:
    return states.astype(float)
