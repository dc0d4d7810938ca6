"""The fields of a log as they are kept: what is plain in another form is converted, the rest refused by name."""

from __future__ import annotations

import numpy as np

from gradientdice.base.arrays import as_array, as_floats, as_numbers
from gradientdice.base.errors import InputError, first_bad_row

REQUIRED = ("states", "actions", "rewards", "next_states")
# The fields that are arrays, in the order of `Transitions`.
ARRAYS = (*REQUIRED, "initial_states", "terminated", "truncated", "episodes", "weights", "behavior_log_probs")
# Orders the rows of an episode while a log is read; it is no field of a log.
STEPS = "steps"
FLAGS = ("terminated", "truncated")
# What is known of rows that were dropped, as files keep it.
DROPPED = "dropped_rows"
# Words that a log may have, of codes, of the numbers in vectors and of dropped rows, and the field of each.
BOOKS = {
    "action_names": "actions", "state_names": "states", "action_columns": "actions", "state_columns": "states",
    DROPPED: "rewards",
}  # fmt: skip
_FLOAT = ("rewards", "weights", "behavior_log_probs")
_WORDS = {"true": True, "t": True, "yes": True, "y": True, "1": True, "1.0": True} | {
    "false": False, "f": False, "no": False, "n": False, "0": False, "0.0": False
}  # fmt: skip


def as_field(name: str, value: object, *, copy: bool = True) -> np.ndarray:
    """One field as it is kept: floats, flags, whole numbers for episodes, numbers for the rest.

    Args:
        name: the field.
        value: as it was given.
        copy: whether it is kept, so that an array that somebody can write must be copied.
    """
    array = as_array(name, value, copy=copy)
    if array.ndim == 0:
        raise InputError(f"{name} must be an array with one row per transition, not the single value {value!r:.40}.")
    if name in _FLOAT:
        return as_floats(name, array, copy=False)
    if name in FLAGS:
        return _as_flags(name, array)
    if name == "episodes":
        return _as_episodes(array)
    if are_words(array) and name == "actions":
        raise InputError(
            "actions must hold numbers, not words: number them in the order of the policy's columns, for example by "
            'actions = [["left", "right"].index(word) for word in actions]. gradientdice.load does that by itself.'
        )
    array = as_numbers(name, array, copy=False)
    if array.dtype.kind == "b" or array.dtype == np.uint64:
        # Unsigned numbers of this size and signed ones have no common type but floats.
        if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
            raise InputError(f"{name} has a number beyond {np.iinfo(np.int64).max}: renumber it.")
        array = array.astype(np.int64)
    return array


def _as_flags(name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype == bool:
        return array
    if are_words(array):
        known = [_WORDS.get(str(word).strip().lower()) for word in array.ravel()]
        bad = np.array([flag is None for flag in known]).reshape(array.shape)
        flags = np.array([bool(flag) for flag in known]).reshape(array.shape)
    else:
        flags = as_numbers(name, array)
        bad = (flags != 0) & (flags != 1)
    if bad.any():
        row = first_bad_row(bad)
        raise InputError(f"{name} must be true or false; row {row} is {array[row]!r:.60}.")
    return flags.astype(bool)


def _as_episodes(array: np.ndarray) -> np.ndarray:
    large = array.dtype.kind == "O" and all(isinstance(one, int) for one in array.flat)  # beyond 64 bits
    if are_words(array) or array.dtype.kind == "M" or large:
        _, first, index = np.unique(array.astype(str), return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[index]
    array = as_numbers("episodes", array, copy=False)
    whole = array.astype(np.int64) if array.dtype.kind == "f" and (np.abs(array) < 2**53).all() else array
    if array.dtype.kind not in "iu" and (whole.dtype.kind != "i" or (whole != array).any()):
        raise InputError(f"episodes must be whole numbers or names, not {array.dtype}.")
    return whole


def are_words(array: np.ndarray) -> bool:
    """Whether an array holds text."""
    return array.dtype.kind in "US" or (array.dtype.kind == "O" and all(isinstance(word, str) for word in array.flat))


def as_next_states(
    value: object, states: np.ndarray, terminated: np.ndarray | None, *, copy: bool = True
) -> np.ndarray:
    """The next states. What follows an end is not used: where it is masked or not finite, the state before it is kept.

    Args:
        value: the next states as they were given.
        states: as they are kept.
        terminated: as they are kept.
        copy: see `as_field`.
    """
    mask, given = None, value
    if isinstance(value, np.ma.MaskedArray):
        mask, given = np.ma.getmaskarray(value), value.data
    array = as_field("next_states", given, copy=copy)
    if terminated is None and mask is None:
        return _whole_as_states(array, states)
    fits = terminated is not None and array.shape == states.shape and terminated.shape == (len(array),)
    ended = terminated.reshape(-1, *[1] * (array.ndim - 1)) if terminated is not None and fits else np.array(False)
    unknown = ~np.isfinite(array) if array.dtype.kind == "f" else np.zeros(array.shape, dtype=bool)
    if mask is not None:
        as_field("next_states", np.ma.MaskedArray(array, mask & ~ended))  # refused where it is needed
        unknown |= mask
    unknown &= ended
    if not unknown.any():
        return _whole_as_states(array, states)
    rows = unknown.reshape(len(array), -1).any(axis=1)
    filled = np.array(array, dtype=np.result_type(array, states))
    filled[rows] = states[rows]
    return _whole_as_states(filled, states)


def _whole_as_states(following: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Whole numbers among whole-number states, where missing ones after ends had made floats of them."""
    if states.dtype.kind not in "iu" or following.dtype.kind != "f" or not np.isfinite(following).all():
        return following
    whole = following.astype(states.dtype)
    return whole if (whole == following).all() else following


def as_names(name: str, value: object, codes: np.ndarray) -> tuple[str, ...]:
    """A code book as it is kept: the word of each code; an error unless it has one for every code."""
    words = _different_words(name, value, "code")
    if codes.ndim != 1 or codes.dtype.kind not in "iu":
        raise InputError(f"{name} are for whole numbers, and this log has {codes.dtype} of shape {codes.shape}.")
    outside = (codes < 0) | (codes >= len(words))
    if outside.any():
        row = first_bad_row(outside)
        raise InputError(f"{name} has {len(words)} words, and row {row} has the code {codes[row]}.")
    return words


def as_column_names(name: str, value: object, array: np.ndarray) -> tuple[str, ...]:
    """The name of each number of a row; an error unless there are as many as a row has numbers."""
    words = _different_words(name, value, "column")
    width = 1 if array.ndim == 1 else array.shape[1]
    if len(words) != width:
        raise InputError(f"{name} has {len(words)} names, and a row has {width} numbers: give one per number.")
    return words


def _different_words(name: str, value: object, each: str) -> tuple[str, ...]:
    words = tuple(value) if isinstance(value, (list, tuple)) else ()
    if not words or not all(isinstance(word, str) for word in words) or len(set(words)) < len(words):
        raise InputError(f"{name} must list different words, one per {each}, not {value!r:.60}.")
    return words
