"""The CSV format: a header, one row per transition, and before it a line of types if the library wrote the file."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradientdice.base.errors import InputError, first_bad_row, require_count
from gradientdice.log.fields import BOOKS
from gradientdice.log.files import type_line
from gradientdice.log.files.arrow_table import columns_of
from gradientdice.log.files.reading import Found

if TYPE_CHECKING:
    import pyarrow as pa

# Quotes are looked for in so many bytes.
LOOKED_AT = 1 << 20
# What other programs put between the values of a row.
OTHERS = ("\t", ";", "|", ",")


@dataclass(frozen=True)
class CSV:
    """How a CSV file is written, where it is not the usual way.

    Attributes:
        delimiter: between two values of a row.
        quote: around values that contain the delimiter; None if nothing is quoted.
        skip_rows: how many lines come before the header.
        names: the columns' names, for a file without a header; None reads them from it.
    """

    delimiter: str = ","
    quote: str | None = '"'
    skip_rows: int = 0
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        for name in ("delimiter", "quote"):
            value = getattr(self, name)
            if not (isinstance(value, str) and len(value) == 1) and not (name == "quote" and value is None):
                raise InputError(f"{name} must be one character, not {value!r:.40}.")
        require_count("skip_rows", self.skip_rows, low=0)
        listed = isinstance(self.names, (list, tuple)) and self.names and all(isinstance(n, str) for n in self.names)
        if self.names is not None and not listed:
            raise InputError(f"names must be the columns' names in order, not {self.names!r:.60}.")


def read(path: Path, names: dict[str, str], options: CSV | None = None) -> Found:
    """The columns of these names; those of a vector are name_0, name_1, …."""
    # Opened once: another process may put another file in its place between the line of types and the table.
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
        types = type_line.read(path, stream)
        _require_delimiter(path, stream, options or CSV())
        table = _read_table(stream, options or CSV(), names)
    if names and not table.num_rows:
        raise InputError(f"{path} has no rows, only a header.")
    found = columns_of(path, table, {key: name for key, name in names.items() if key not in BOOKS})
    for key, array in found.items():
        if names[key] in types:
            found[key] = _cast(path, names[key], array, types[names[key]])
    books = {key: np.array(types[name]) for key, name in names.items() if name in BOOKS and name in types}
    return {**found, **books}, table.column_names


def _read_table(stream: Any, options: CSV, names: dict[str, str]) -> pa.Table:
    """The rest of a file; only its header if no columns are asked for.

    Arrow takes a column's type from its first cells. Where a later cell has another one, all cells are read as text, so
    that what is wrong can be said; times with zones too, which Arrow would turn into one zone.
    """
    import pyarrow as pa

    place = stream.tell()
    try:
        table = _table(stream, options, header_only=not names)
    except pa.ArrowInvalid as error:
        if "conversion error" not in str(error):
            raise
        stream.seek(place)
        header = _table(stream, options, header_only=True)
        stream.seek(place)
        return _table(stream, options, as_text=header.column_names)
    zoned = [name for name, kind in zip(table.column_names, table.schema.types, strict=True) if _has_zone(kind)]
    if not zoned:
        return table
    stream.seek(place)
    return _table(stream, options, as_text=zoned)


def _has_zone(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return pa.types.is_timestamp(kind) and kind.tz is not None


def _table(stream: Any, options: CSV, *, header_only: bool = False, as_text: Sequence[str] = ()) -> pa.Table:
    """The rest of a file, or only what its columns are called."""
    import pyarrow as pa
    from pyarrow import csv

    settings: dict[str, Any] = {
        "read_options": csv.ReadOptions(
            skip_rows=options.skip_rows, column_names=None if options.names is None else list(options.names)
        ),
        "parse_options": csv.ParseOptions(
            delimiter=options.delimiter,
            quote_char=False if options.quote is None else options.quote,
            newlines_in_values=options.quote is not None and _has_quotes(stream, options.quote),
        ),
        "convert_options": csv.ConvertOptions(column_types=dict.fromkeys(as_text, pa.string())),
    }
    if header_only:
        with csv.open_csv(stream, **settings) as reader:
            return reader.schema.empty_table()
    return csv.read_csv(stream, **settings)


def _require_delimiter(path: Path, stream: Any, options: CSV) -> None:
    """An error if the header has another delimiter than was said: each row would be a single value."""
    place = stream.tell()
    header = stream.read(LOOKED_AT).split(b"\n")[options.skip_rows : options.skip_rows + 1]
    stream.seek(place)
    if options.names is None and header and options.delimiter.encode() not in header[0]:
        other = next((one for one in OTHERS if one.encode() in header[0]), None)
        if other is not None:
            raise InputError(
                f"{path}: its columns seem to be separated by {other!r}. Say so: csv=gradientdice.CSV(delimiter="
                f"{other!r}). Numbers need a decimal point."
            )


def _has_quotes(stream: Any, quote: str) -> bool:
    """Whether what comes next has a quoted value, which may go over several lines."""
    place = stream.tell()
    found = quote.encode() in stream.read(LOOKED_AT)
    stream.seek(place)
    return found


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


def write(columns: dict[str, np.ndarray], path: Path, books: dict[str, list[str]]) -> None:
    """Writes a table, and before it the types, the code books and a checksum."""
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
        type_line.write(columns, books, stream)
        csv.write_csv(pa.table(table), stream)
        type_line.finish(columns, books, stream)
