"""Next states where a log has none: the next row of the same episode, never a row of another one."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool

from gradientdice.data.datasets.names import STEPS
from gradientdice.data.datasets.raw import Raw
from gradientdice.errors import InputError

Flags = Bool[np.ndarray, " n"]


def with_next_states(raw: Raw) -> Raw:
    """The log with the next states that its own rows give.

    The last row of an episode that ended needs none. That of an episode cut by a time limit, or by the end of the log,
    has none that is known: it is dropped, and the row before it is then the episode's last, cut by a time limit.
    """
    columns = _in_order(raw)
    states = columns["states"]
    ended, cut = _flag(columns, "terminated", len(states)), _flag(columns, "truncated", len(states))
    if "episodes" not in columns:
        if not (ended | cut).any() and raw.one_step:
            raw.columns, raw.notes = (
                columns | {"next_states": None},
                [*raw.notes, "every row is an episode of one step"],
            )
            return raw
        if not (ended | cut).any():
            raise InputError(
                f"{raw.place} lacks the field 'next_states', and has neither episodes nor ends, so that no row's next "
                "is known. Say which columns they are: columns={'next_states': '…'} or {'episodes': '…'}. A bandit "
                "log has none: columns={'next_states': None}, or --column next_states= on the command line."
            )
        columns["episodes"] = numbered(ended | cut)
        raw.notes.append("episodes were told apart by their ends")
    episodes = columns["episodes"]
    last = np.append(episodes[1:] != episodes[:-1], True) | ended | cut
    keep = ended | ~last
    following = np.concatenate([states[1:], states[-1:]])
    following[ended] = states[ended]
    # The row before a dropped one is followed by a state that was seen, and then by nothing.
    before_dropped = np.append(~keep[1:], False) & keep & ~ended
    kept = {name: array[keep] for name, array in columns.items() if len(array) == len(keep) and name != STEPS}
    kept |= {"next_states": following[keep], "terminated": ended[keep], "truncated": before_dropped[keep]}
    if "initial_states" in columns:
        kept["initial_states"] = columns["initial_states"]
    if not keep.any():
        raise InputError(f"{raw.place}: no row has a next state or an end. Give next_states.")
    notes = ["next states were made from the next row of the same episode"]
    if not keep.all():
        notes.append(
            f"{int((~keep).sum()):,} rows at time limits or at the end of the log were dropped: what followed them is "
            "not in the log"
        )
    raw.columns, raw.notes = kept, [*raw.notes, *notes]
    return raw


def numbered(over: Flags) -> np.ndarray:
    """Episodes in rows that follow each other: a new one begins after each end."""
    return np.concatenate([[0], np.cumsum(over[:-1])])


def _in_order(raw: Raw) -> dict[str, np.ndarray]:
    """The columns with the rows of each episode together, in the order of their steps if the log has them."""
    columns = dict(raw.columns)
    steps = columns.pop(STEPS, None)
    if "episodes" not in columns:
        return columns
    _, first, episode = np.unique(columns["episodes"], return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))[episode]  # in the order in which they first appear
    if steps is None or steps.ndim != 1 or steps.dtype.kind not in "iuf":
        steps = np.arange(len(rank))
    order = np.lexsort((steps, rank))
    _require_once(raw.place, columns["episodes"][order], steps[order])
    if (order == np.arange(len(order))).all():
        return columns
    raw.notes.append("rows were sorted by episode and step")
    return {name: array if name == "initial_states" else array[order] for name, array in columns.items()}


def _require_once(place: str, episodes: np.ndarray, steps: np.ndarray) -> None:
    """An error if an episode has a step twice: its number then stands for several episodes."""
    twice = (episodes[1:] == episodes[:-1]) & (steps[1:] == steps[:-1])
    if twice.any():
        row = int(np.argmax(twice))
        raise InputError(
            f"{place}: episode {episodes[row]} has step {steps[row]} twice, so that its rows cannot be ordered. Give "
            "every episode a number of its own."
        )


def _flag(columns: dict[str, np.ndarray], name: str, rows: int) -> Flags:
    return columns[name].astype(bool) if name in columns else np.zeros(rows, dtype=bool)
