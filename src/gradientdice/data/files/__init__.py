"""Reading and writing logs: npz (never pickles), Parquet and CSV, bit for bit.

The tables have one row per transition and one column per field. A field of vectors is a fixed-size list
column in Parquet and the columns name_0, name_1, … in CSV. The initial states, of which there may be any
number, are spread over the rows: in Parquet each row holds a list of some, in CSV row i holds the i-th
and the rest are blank. JSON lines are read, not written.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gradientdice.atomic import write_atomically
from gradientdice.data.fields import ARRAYS
from gradientdice.data.files.reading import guarded, kind_of, read_columns
from gradientdice.errors import InputError

if TYPE_CHECKING:
    from gradientdice.data.transitions import Transitions

__all__ = ["code_books", "read_columns", "save"]

# The words of the actions' and states' codes, where a log had words.
BOOKS = ("action_names", "state_names")


def save(data: Transitions, path: str | Path) -> None:
    """Writes a log; a half-written file is never left under the final name."""
    from gradientdice.data.files import csv, npz, parquet
    from gradientdice.data.files.reading import as_path

    place = as_path(path)
    writer = {".npz": npz.write, ".parquet": parquet.write, ".csv": csv.write}.get(place.suffix)
    if writer is None:
        raise InputError(f"{place}: a log is saved as .npz, .parquet or .csv.")
    columns: dict[str, np.ndarray] = {name: getattr(data, name) for name in ARRAYS if getattr(data, name) is not None}
    books = {name: list(getattr(data, name)) for name in BOOKS if getattr(data, name) is not None}
    write_atomically(place, lambda target: writer(columns, target, books))


def code_books(path: Path) -> dict[str, list[str]]:
    """The words of actions and states that were saved with a log; none in files of other kinds."""
    from gradientdice.data.files import csv, npz, parquet

    kind = ".parquet" if path.is_dir() else kind_of(path)
    reader = {".npz": npz.code_books, ".parquet": parquet.code_books, ".csv": csv.code_books}.get(kind)
    return {} if reader is None else guarded(path, "a readable file", lambda: reader(path))
