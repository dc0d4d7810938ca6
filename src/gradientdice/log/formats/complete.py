"""From what a reader found to a log: codes for words, vectors for what has other shapes, ends told from time limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gradientdice.base.errors import InputError, first_bad_row
from gradientdice.log.fields import FLAGS, STEPS, as_field
from gradientdice.log.formats.following import (
    in_order,
    mark_last_rows,
    numbered,
    require_ends_last,
    with_next_states,
)
from gradientdice.log.formats.labels import code_book, coded, listed
from gradientdice.log.formats.observations import flat
from gradientdice.log.formats.raw import Raw
from gradientdice.log.sequence import breaks, is_over
from gradientdice.log.transitions import Transitions

SCALARS = ("rewards", "terminated", "truncated", "episodes", "weights", "behavior_log_probs", STEPS)
STATES = ("states", "next_states", "initial_states")


def complete(raw: Raw) -> Transitions:
    """The log that a reader found."""
    try:
        return _complete(raw)
    except InputError as error:
        message = str(error)
        raise InputError(message if message.startswith(raw.place) else f"{raw.place}: {message}") from error


def _complete(raw: Raw) -> Transitions:
    books = _with_codes(raw)
    if not raw.as_written:
        _with_plain_shapes(raw, books)
        _with_ends(raw)
    if "next_states" not in raw.columns or STEPS in raw.columns or raw.episode_ends is not None:
        for name in (name for name in FLAGS if name in raw.columns):  # they may be words
            raw.columns[name] = as_field(name, raw.columns[name])
        _require_rows(raw)
        if "next_states" not in raw.columns:
            raw = with_next_states(raw)
        else:
            in_order(raw)
            mark_last_rows(raw)
    raw.columns.pop(STEPS, None)
    for array in raw.columns.values():
        if isinstance(array, np.ndarray) and array.base is None:
            array.setflags(write=False)  # no one else has them, so that Transitions need not copy them
    data = Transitions(
        **raw.columns, **{"dropped_rows": raw.dropped, **books}, source_rows=raw.rows, notes=tuple(raw.notes)
    )
    if raw.as_written:
        return data
    _require_nothing_after_ends(raw.place, data)
    return _with_episodes(data)


def _require_nothing_after_ends(place: str, data: Transitions) -> None:
    """Raise if an episode whose rows are in time order goes on after its end; a bandit's episodes are only groups."""
    if data.episodes is None or data.terminated is None or data.terminated.all():
        return
    inside = np.append(data.episodes[1:] == data.episodes[:-1], False)
    after = inside & data.terminated
    if after.any() and data.time_order is not None:
        require_ends_last(place, after, data.episodes, np.arange(len(data)))


def _with_codes(raw: Raw) -> dict[str, Any]:
    """Makes codes of words; returns the code books, beside those that the source has."""
    books: dict[str, Any] = dict(raw.books)
    for name, fields in (("action", ("actions",)), ("state", STATES)):
        book = code_book(f"{name}s", *(raw.columns.get(field) for field in fields))
        if book is not None:
            for field in fields:
                if field in raw.columns:
                    raw.columns[field] = coded(raw.columns[field], book)
                    _require_words(field, raw.columns[field])
            books[f"{name}_names"] = book
            raw.notes.append(f"{name}s were words: {listed(book)}")
    return books


def _require_words(field: str, codes: np.ndarray) -> None:
    """An error if a word is missing where one is needed; what follows an end is not used."""
    if field != "next_states" and np.ma.getmaskarray(codes).any():
        row = first_bad_row(np.ma.getmaskarray(codes))
        raise InputError(f"{field} has no value in row {row}. Fill or drop such rows.")


def _with_plain_shapes(raw: Raw, books: dict[str, Any]) -> None:
    columns = raw.columns
    for name in STATES:
        if name in columns:
            columns[name] = flat(name, columns[name])
    for name in SCALARS:
        if name in columns and columns[name].ndim == 2 and columns[name].shape[1] == 1:
            columns[name] = columns[name][:, 0]
    actions = columns["actions"] = flat("actions", columns["actions"])
    if actions.ndim == 2 and actions.shape[1] == 1 and actions.dtype.kind in "iub":
        columns["actions"] = actions[:, 0]
    elif _is_one_hot(actions):
        columns["actions"] = actions.argmax(axis=1)
        names = books.pop("action_columns", None)
        if names is None:
            raw.notes.append(f"one-hot actions became the numbers 0 to {actions.shape[1] - 1}")
        else:
            books["action_names"] = names
            raw.notes.append(f"one-hot actions became codes: {listed(names)}")
    states = columns["states"]
    if states.ndim == 2 and states.shape[1] == 1 and states.dtype.kind in "iu":
        for name in (name for name in STATES if name in columns):
            columns[name] = columns[name].reshape(len(columns[name]))


def _is_one_hot(actions: np.ndarray) -> bool:
    """Whether every row has a single 1, and zeros."""
    if actions.ndim != 2 or actions.shape[1] < 2 or actions.dtype.kind not in "buif":
        return False
    return bool(((actions == 0) | (actions == 1)).all() and (actions.sum(axis=1) == 1).all())


def _with_ends(raw: Raw) -> None:
    """Tells terminations from time limits where one column is true at both."""
    columns = raw.columns
    for name in FLAGS:
        if name in columns:
            columns[name] = as_field(name, columns[name])
    if not raw.done:
        return
    if "truncated" in columns:
        if (columns["terminated"] & columns["truncated"]).any():
            raw.notes.append("where a time limit is marked too, the end is taken for the time limit")
        columns["terminated"] = columns["terminated"] & ~columns["truncated"]
    else:
        raw.notes.append(
            "every end is taken for a termination; if it marks time limits too, name a column for truncated"
        )


def _require_rows(raw: Raw) -> None:
    """An error if the columns differ in length: Transitions says so too, but only once there are next states."""
    rows = len(raw.columns["states"])
    for name, array in raw.columns.items():
        if name != "initial_states" and len(array) != rows:
            raise InputError(f"{name} has {len(array)} rows but states has {rows}: one row per transition.")


def _with_episodes(data: Transitions) -> Transitions:
    """Numbers the episodes of a log in time order whose ends are marked, so that their first states are known."""
    if data.episodes is not None or data.initial_states is not None:
        return data
    over = is_over(data)
    rows = np.flatnonzero(~over[:-1])
    if not over.any() or not len(rows) or breaks(data, rows, rows + 1).any():
        return data
    return replace(
        data, episodes=numbered(over), notes=(*data.notes, "rows follow each other: episodes were told by their ends")
    )
