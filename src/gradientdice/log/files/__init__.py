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

from gradientdice.base.atomic import write_atomically
from gradientdice.base.errors import InputError
from gradientdice.log.fields import ARRAYS, BOOKS, DROPPED
from gradientdice.log.files.reading import read_columns

if TYPE_CHECKING:
    from gradientdice.log.transitions import Transitions

__all__ = ["read_columns", "save"]


def save(data: Transitions, path: str | Path) -> None:
    """Writes a log; a half-written file is never left under the final name."""
    from gradientdice.log.files import csv, npz, parquet
    from gradientdice.log.files.reading import as_path

    place = as_path(path)
    writer = {".npz": npz.write, ".parquet": parquet.write, ".csv": csv.write}.get(place.suffix)
    if writer is None:
        raise InputError(f"{place}: a log is saved as .npz, .parquet or .csv.")
    columns: dict[str, np.ndarray] = {name: getattr(data, name) for name in ARRAYS if getattr(data, name) is not None}
    words = {name: getattr(data, name) for name in BOOKS if name != DROPPED}
    books = {name: list(book) for name, book in words.items() if book is not None}
    if data.dropped_rows is not None:
        books[DROPPED] = data.dropped_rows.written()
    write_atomically(place, lambda target: writer(columns, target, books))
