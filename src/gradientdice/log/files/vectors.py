"""Vectors in tables of plain numbers: the columns name_0, name_1, … are one field."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from gradientdice.base.errors import InputError


def parts_of(place: object, name: str, present: Sequence[str]) -> list[str]:
    """The column of this name, or those of a vector's numbers in order; none if there are none."""
    counts, pattern = Counter(present), re.compile(rf"{re.escape(name)}_[0-9]+")
    numbered = sorted(column for column in counts if pattern.fullmatch(column))
    vector = [f"{name}_{number}" for number in range(len(numbered))]
    twice = [column for column in (name, *numbered) if counts[column] > 1]
    if twice:
        raise InputError(f"{place} has two columns named {twice[0]!r}: rename or drop one of them.")
    if name in present:
        if f"{name}_0" in present:
            raise InputError(f"{place} has the columns {name} and {name}_0: drop the one, or say which with columns=.")
        return [name]
    missing = [column for column in vector if column not in present]
    if missing:
        raise InputError(
            f"{place} has the columns {numbered[:5]} but no {missing[0]}: number them from 0 without gaps."
        )
    return vector


def side_by_side(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The numbers of a vector, each from a column of its own, masked where one is."""
    joined = np.ma.concatenate([array.reshape(len(array), -1) for array in arrays], axis=1)
    return joined if np.ma.getmaskarray(joined).any() else np.ma.getdata(joined)


def without_blanks(place: object, name: str, array: np.ndarray) -> np.ndarray:
    """The rows that have a value: there may be fewer initial states than transitions."""
    blank = np.ma.getmaskarray(array).reshape(len(array), -1)
    partly = blank.any(axis=1) & ~blank.all(axis=1)
    if partly.any():
        row = int(np.argmax(partly))
        raise InputError(f"{place}: row {row} has only some of the columns {name}_0, {name}_1, …: fill or empty it.")
    return np.ma.getdata(array)[~blank.any(axis=1)]
