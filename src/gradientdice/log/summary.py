"""A log in a few lines, for a reader who types its name: sizes, ranges and ends in place of all its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gradientdice.log.transitions import Transitions

# Words are listed up to so many characters, which leaves a line of a terminal unbroken.
MOST_CHARACTERS = 50


def summary(data: Transitions) -> str:
    """What `repr(data)` shows."""
    within = "" if data.episodes is None else f" in {_several(len(np.unique(data.episodes)), 'episode')}"
    lines = [
        ("states", _column(data.states, data.state_names, data.state_columns)),
        ("actions", _column(data.actions, data.action_names, data.action_columns)),
        ("rewards", f"{data.rewards.min():.4g} to {data.rewards.max():.4g}, mean {data.rewards.mean():.4g}"),
        ("ends", f"{_count(data.terminated)} terminated, {_count(data.truncated)} truncated"),
    ]
    if data.initial_states is not None:
        lines.append(("initial states", f"{len(data.initial_states):,}"))
    lines += [(name, "given") for name in ("weights", "behavior_log_probs") if getattr(data, name) is not None]
    lines += [("note", note) for note in data.notes]
    return "\n".join(
        [f"Transitions: {_several(len(data), 'row')}{within}", *(f"  {name:<18}  {text}" for name, text in lines)]
    )


def _column(values: np.ndarray, names: tuple[str, ...] | None, columns: tuple[str, ...] | None) -> str:
    """What a column of states or actions holds."""
    if names is not None:
        return f"{len(names)} kinds: {_listed(names)}"
    of = "" if columns is None else f": {_listed(columns)}"
    if values.ndim > 1:
        return f"vectors of {_several(values.shape[1], 'number')}{of}"
    kind = "numbers" if np.issubdtype(values.dtype, np.floating) else "whole numbers"
    return f"{kind} from {values.min():g} to {values.max():g}{of}"


def _several(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _listed(words: tuple[str, ...]) -> str:
    """The words, or as many as a line has room for; they may have commas of their own."""
    whole = " · ".join(words)
    if len(whole) <= MOST_CHARACTERS:
        return whole
    return (whole[:MOST_CHARACTERS].rpartition(" · ")[0] or words[0][:MOST_CHARACTERS]) + " · …"


def _count(flags: np.ndarray | None) -> str:
    return "none" if flags is None else f"{np.count_nonzero(flags):,}"
