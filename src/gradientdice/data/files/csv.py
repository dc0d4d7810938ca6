"""The CSV format: a header, one row per transition, and before it a line of types if the library wrote the file."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np

from gradientdice.data.files import type_line
from gradientdice.data.files.parquet import from_arrow
from gradientdice.data.files.reading import Found
from gradientdice.errors import InputError, first_bad_row


def read(path: Path, names: dict[str, str]) -> Found:
    """The columns of these names; those of a vector are name_0, name_1, …."""
    from pyarrow import csv

    # Opened once: another process may put another file in its place between the line of types and the table.
    with path.open("rb") as stream:
        types = type_line.read(path, stream)
        table = csv.read_csv(stream)
    present = table.column_names
    found = {}
    for key, name in names.items():
        parts = _parts(path, name, present)
        if parts:
            arrays = [from_arrow(path, part, table[part].combine_chunks()) for part in parts]
            array = arrays[0] if parts == [name] else np.ma.stack(arrays, axis=1)
            if key.startswith("initial_"):
                array = _without_blanks(path, name, array)
            elif not np.ma.getmaskarray(array).any():
                array = np.ma.getdata(array)
            found[key] = _cast(path, name, array, types[name]) if name in types else array
    return found, present


def _parts(path: Path, name: str, present: list[str]) -> list[str]:
    """The column of this name, or those of a vector's numbers in order; none if there are none."""
    counts, pattern = Counter(present), re.compile(rf"{re.escape(name)}_[0-9]+")
    numbered = sorted(column for column in counts if pattern.fullmatch(column))
    vector = [f"{name}_{number}" for number in range(len(numbered))]
    twice = [column for column in (name, *numbered) if counts[column] > 1]
    if twice:
        raise InputError(f"{path} has two columns named {twice[0]!r}: rename or drop one of them.")
    if name in present:
        if f"{name}_0" in present:
            raise InputError(f"{path} has the columns {name} and {name}_0: drop the one, or say which with columns=.")
        return [name]
    missing = [column for column in vector if column not in present]
    if missing:
        raise InputError(f"{path} has the columns {numbered[:5]} but no {missing[0]}: number them from 0 without gaps.")
    return vector


def _without_blanks(path: Path, name: str, array: np.ndarray) -> np.ndarray:
    """The rows that have a value: there may be fewer initial states than transitions."""
    blank = np.ma.getmaskarray(array).reshape(len(array), -1)
    partly = blank.any(axis=1) & ~blank.all(axis=1)
    if partly.any():
        row = int(np.argmax(partly))
        raise InputError(f"{path}: row {row} has only some of the columns {name}_0, {name}_1, …: fill or empty it.")
    return np.ma.getdata(array)[~blank.any(axis=1)]


def _cast(path: Path, name: str, array: np.ndarray, kind: str) -> np.ndarray:
    """The column as the line of types has it; an error if a number does not fit."""
    target, values = np.dtype(kind), np.ma.getdata(array)
    if values.dtype.kind not in "buif":
        raise InputError(f"{path}: the column {name} must hold {kind}, as its first line says, not {values.dtype}.")
    with np.errstate(all="ignore"):
        cast = values.astype(target)
        # Fewer digits are what a shorter float is; anything else must be the same number.
        slack = np.finfo(target).eps * np.abs(values.astype(np.float64)) if target.kind == "f" else 0.0
        off = np.abs(cast.astype(np.float64) - values.astype(np.float64)) > slack
        if target.kind != "f":
            off |= cast != values
    off &= ~np.ma.getmaskarray(array)
    if off.any():
        row = first_bad_row(off)
        raise InputError(f"{path}: {name} is {values[row]} in row {row}, which is no {kind} as its first line says.")
    return np.ma.MaskedArray(cast, array.mask) if isinstance(array, np.ma.MaskedArray) else cast


def write(columns: dict[str, np.ndarray], path: Path) -> None:
    """Writes a table, and before it the types and a checksum."""
    import pyarrow as pa
    from pyarrow import csv

    n = len(columns["rewards"])
    table = {}
    for name, array in columns.items():
        if len(array) > n:
            raise InputError(
                f"CSV has one row per transition, so it cannot hold {len(array)} initial states beside {n} "
                "transitions. Save as .npz or .parquet."
            )
        parts = {name: array} if array.ndim == 1 else {f"{name}_{k}": array[:, k] for k in range(array.shape[1])}
        for part, values in parts.items():
            table[part] = pa.array(np.pad(values, (0, n - len(values))), mask=np.arange(n) >= len(values))
    with path.open("w+b") as stream:
        type_line.write(columns, stream)
        csv.write_csv(pa.table(table), stream)
        type_line.finish(columns, stream)
