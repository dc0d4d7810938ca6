"""Reading and writing logs: npz (never pickles), Parquet and CSV, bit for bit.

The tables have one row per transition and one column per field. A field of vectors is a fixed-size list
column in Parquet and the columns name_0, name_1, … in CSV. The initial states, of which there may be any
number, are spread over the rows: in Parquet each row holds a list of some, in CSV row i holds the i-th
and the rest are blank.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from gradientdice.atomic import write_atomically
from gradientdice.data.fields import REQUIRED
from gradientdice.data.files.reading import nearest, read_columns
from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError

__all__ = ["FIELDS", "checked_names", "load", "read_columns", "save"]

FIELDS = tuple(field.name for field in fields(Transitions))


def load(path: str | Path, *, columns: dict[str, str] | None = None) -> Transitions:
    """Reads a log from a .npz, .parquet (a file or a folder of them) or .csv file.

    Args:
        path: the file or folder.
        columns: field -> the name it has in the file, for logs that use other names.

    Raises:
        InputError: if the file is missing, empty, damaged, of another kind, or lacks a field.
    """
    renamed = checked_names(columns)
    found, present = read_columns(path, {name: renamed.get(name, name) for name in FIELDS})
    absent = [name for name in renamed if name not in found]
    if absent:
        raise InputError(f"{path} has no column {renamed[absent[0]]!r}; {nearest(renamed[absent[0]], present)}.")
    missing = [name for name in REQUIRED if name not in found]
    if missing == ["next_states"]:
        raise InputError(
            f"{path} lacks the field 'next_states'; {nearest('next_states', present)}. Say if it has another name: "
            "columns={'next_states': '…'}. A bandit log has none: make Transitions with next_states=None."
        )
    if missing:
        raise InputError(
            f"{path} lacks the field {missing[0]!r}; {nearest(missing[0], present)}. If it has another name there, "
            f"say so: columns={{{missing[0]!r}: '…'}}."
        )
    for array in found.values():
        array.setflags(write=False)  # no one else has them, so that Transitions need not copy them
    try:
        return Transitions(**found)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def save(data: Transitions, path: str | Path) -> None:
    """Writes a log; a half-written file is never left under the final name."""
    from gradientdice.data.files import csv, npz, parquet
    from gradientdice.data.files.reading import as_path

    place = as_path(path)
    writer = {".npz": npz.write, ".parquet": parquet.write, ".csv": csv.write}.get(place.suffix)
    if writer is None:
        raise InputError(f"{place}: a log is saved as .npz, .parquet or .csv.")
    columns: dict[str, np.ndarray] = {name: getattr(data, name) for name in FIELDS if getattr(data, name) is not None}
    write_atomically(place, lambda target: writer(columns, target))


def checked_names(columns: Any) -> dict[str, str]:
    """`columns` as given to `load`; an error unless it maps fields to names."""
    if columns is None:
        return {}
    if not isinstance(columns, dict) or not all(isinstance(name, str) for pair in columns.items() for name in pair):
        raise InputError(f"columns must be a dictionary of field -> name in the file, not {columns!r:.60}.")
    unknown = sorted(set(columns) - set(FIELDS))
    if unknown:
        raise InputError(f"columns names {unknown[0]!r}, which is no field of a log; the fields are {list(FIELDS)}.")
    return columns
