"""Columns of an Arrow table in memory: what CSV and JSON lines are read into, and what data frames are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gradientdice.log.files.parquet import from_arrow
from gradientdice.log.files.text import settled
from gradientdice.log.files.vectors import parts_of, side_by_side, without_blanks

if TYPE_CHECKING:
    import pyarrow as pa


def columns_of(place: object, table: pa.Table, names: dict[str, str]) -> dict[str, np.ndarray]:
    """The columns of these names by their keys; those of a vector are name_0, name_1, …."""
    found = {}
    for key, name in names.items():
        parts = parts_of(place, name, table.column_names)
        if parts:
            arrays = [
                settled(place, key, part, from_arrow(place, part, table[part].combine_chunks())) for part in parts
            ]
            array = arrays[0] if parts == [name] else side_by_side(arrays)
            if key.startswith("initial_"):
                array = without_blanks(place, name, array)
            elif not np.ma.getmaskarray(array).any():
                array = np.ma.getdata(array)
            found[key] = array
    return found
