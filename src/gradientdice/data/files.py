"""Reading and writing logs: npz (never pickles), Parquet and CSV, bit for bit.

The tables have one row per transition and one column per field. A field of vectors is a fixed-size list
column in Parquet and the columns name_0, name_1, … in CSV. The initial states, of which there may be any
number, are spread over the rows: in Parquet each row holds a list of some, in CSV row i holds the i-th
and the rest are blank.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gradientdice.atomic import write_atomically
from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.dataset import Dataset

FIELDS = tuple(field.name for field in fields(Transitions))
REQUIRED = ("states", "actions", "rewards", "next_states")


def load(path: str | Path, *, columns: dict[str, str] | None = None) -> Transitions:
    """Reads a log from a .npz, .parquet (a file or a folder of them) or .csv file.

    Args:
        path: the file or folder.
        columns: field -> the name it has in the file, for logs that use other names.

    Raises:
        InputError: if the file is missing, empty, of another kind, or lacks a field.
    """
    path = Path(path)
    unknown = sorted(set(columns or {}) - set(FIELDS))
    if unknown:
        raise InputError(f"columns names {unknown[0]!r}, which is no field of a log; the fields are {list(FIELDS)}.")
    found, present = read_columns(path, {name: (columns or {}).get(name, name) for name in FIELDS})
    absent = [name for name in columns or {} if name not in found]
    if absent:
        raise InputError(f"{path} has no column {(columns or {})[absent[0]]!r}; it has {sorted(present)}.")
    missing = [name for name in REQUIRED if name not in found]
    if missing:
        raise InputError(
            f"{path} lacks the field {missing[0]!r}; it has {sorted(present)}. If it has another name there, "
            f"say so: columns={{{missing[0]!r}: '…'}}."
        )
    for array in found.values():
        array.setflags(write=False)  # no one else has them, so that Transitions need not copy them
    return Transitions(**found)


def read_columns(path: Path, names: dict[str, str]) -> tuple[dict[str, np.ndarray], list[str]]:
    """Some columns of a file: (key -> array for those that are there, the names of all columns)."""
    if not path.exists():
        raise InputError(f"There is no file {path}.")
    if path.is_file() and path.stat().st_size == 0:
        raise InputError(f"{path} is empty.")
    kind = ".parquet" if path.is_dir() else path.suffix
    reader = {".npz": _read_npz, ".parquet": _read_parquet, ".csv": _read_csv}.get(kind)
    if reader is None:
        raise InputError(
            f"{path}: a log is a .npz, .parquet or .csv file, not {path.suffix or 'one without suffix'!r}."
        )
    return reader(path, names)


def save(data: Transitions, path: Path) -> None:
    """Writes a log; a half-written file is never left under the final name."""
    writer = {".npz": _write_npz, ".parquet": _write_parquet, ".csv": _write_csv}.get(path.suffix)
    if writer is None:
        raise InputError(f"{path}: a log is saved as .npz, .parquet or .csv.")
    columns = {name: getattr(data, name) for name in FIELDS if getattr(data, name) is not None}
    write_atomically(path, lambda target: writer(columns, target))


def _read_npz(path: Path, names: dict[str, str]) -> tuple[dict[str, np.ndarray], list[str]]:
    try:
        archive = np.load(path, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise ValueError("it holds one array without names")
        with archive:
            return {key: archive[name] for key, name in names.items() if name in archive.files}, list(archive.files)
    except (zipfile.BadZipFile, ValueError, EOFError) as error:
        raise InputError(f"{path} is not a readable .npz file ({error}).") from error


def _write_npz(columns: dict[str, np.ndarray], path: Path) -> None:
    np.savez(path, allow_pickle=False, **columns)


def _read_parquet(path: Path, names: dict[str, str]) -> tuple[dict[str, np.ndarray], list[str]]:
    import pyarrow as pa
    from pyarrow import dataset

    found = {}
    try:
        source = dataset.dataset(path, format="parquet")
        present = source.schema.names
        rows = source.count_rows()
        for key, name in names.items():
            if name in present and not key.startswith("initial_"):
                found[key] = _in_batches(path, source, key, name, rows)
            elif name in present:
                found[key] = _from_arrow(path, key, name, source.to_table(columns=[name])[name].combine_chunks())
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise InputError(f"{path} is not a readable Parquet file ({error}).") from error
    return found, present


def _in_batches(path: Path, source: Dataset, key: str, name: str, rows: int) -> np.ndarray:
    """A column as one array, filled batch by batch, so that it is never in memory twice."""
    result, start = None, 0
    for batch in source.to_batches(columns=[name], batch_size=65_536, batch_readahead=1, fragment_readahead=1):
        if not batch.num_rows:
            continue
        part = _from_arrow(path, key, name, batch.column(0), start)
        if result is None:
            result = np.empty((rows, *part.shape[1:]), dtype=part.dtype)
        if part.shape[1:] != result.shape[1:]:
            raise InputError(f"{path}: the lists in column {name} differ in length.")
        result[start : start + len(part)] = part
        start += len(part)
    return (
        _from_arrow(path, key, name, source.to_table(columns=[name])[name].combine_chunks())
        if result is None
        else result
    )


def _from_arrow(path: Path, key: str, name: str, column: pa.Array, first: int = 0) -> np.ndarray:
    import pyarrow as pa

    spread = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    if spread and key.startswith("initial_"):
        column = column.flatten()
    if column.null_count:
        row = first + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(f"{path}: the column {name} has no value in row {row}. Fill or drop such rows.")
    if pa.types.is_fixed_size_list(column.type):
        return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), column.type.list_size)
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        lengths = np.diff(column.offsets.to_numpy())
        if len(lengths) == 0 or (lengths != lengths[0]).any():
            raise InputError(f"{path}: the lists in column {name} differ in length.")
        return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)
    return column.to_numpy(zero_copy_only=False)


def _write_parquet(columns: dict[str, np.ndarray], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    n = len(columns["rewards"])
    arrays = {name: _to_arrow(array) for name, array in columns.items() if name != "initial_states"}
    if "initial_states" in columns:
        initial = columns["initial_states"]
        offsets = (np.arange(n + 1, dtype=np.int64) * len(initial) + n - 1) // n
        arrays["initial_states"] = pa.LargeListArray.from_arrays(offsets, _to_arrow(initial))
    pq.write_table(pa.table(arrays), path)


def _to_arrow(array: np.ndarray) -> pa.Array:
    import pyarrow as pa

    if array.ndim == 1:
        return pa.array(array)
    return pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])


def _read_csv(path: Path, names: dict[str, str]) -> tuple[dict[str, np.ndarray], list[str]]:
    import pyarrow as pa
    from pyarrow import csv

    try:
        with path.open() as stream:
            first = stream.readline()
        # A first line that starts with '#' holds the types, so that reading back is bit for bit.
        types = json.loads(first[1:]) if first.startswith("#") else {}
        table = csv.read_csv(path, read_options=csv.ReadOptions(skip_rows=1 if types else 0))
    except (pa.ArrowInvalid, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path} is not a readable CSV file ({error}).") from error
    found = {}
    for key, name in names.items():
        parts = [name] if name in table.column_names else _vector_columns(name, table.column_names)
        if parts:
            short = key.startswith("initial_")
            arrays = [_csv_column(path, part, table[part].combine_chunks(), short) for part in parts]
            array = arrays[0] if parts == [name] else np.stack(arrays, axis=1)
            found[key] = array.astype(types[name]) if name in types else array
    return found, table.column_names


def _csv_column(path: Path, name: str, column: pa.Array, short: bool) -> np.ndarray:
    """One column; blanks at its end are allowed where it may be shorter than the others."""
    values = column.drop_null() if short else column
    if values.null_count:
        row = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(f"{path}: the column {name} has no value in row {row}. Fill or drop such rows.")
    return values.to_numpy(zero_copy_only=False)


def _vector_columns(name: str, columns: list[str]) -> list[str]:
    found = []
    while f"{name}_{len(found)}" in columns:
        found.append(f"{name}_{len(found)}")
    return found


def _write_csv(columns: dict[str, np.ndarray], path: Path) -> None:
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
    with path.open("wb") as stream:
        stream.write(b"#" + json.dumps({name: str(array.dtype) for name, array in columns.items()}).encode() + b"\n")
        csv.write_csv(pa.table(table), stream)
