"""Reading and writing logs: npz (never pickles), Parquet and CSV, bit for bit.

The tables have one row a transition and one column a field. A field of vectors is a fixed-size list
column in Parquet and the columns name_0, name_1, … in CSV. The initial states, of which there may be any
number, are spread over the rows: in Parquet each row holds a list of some, in CSV row i holds the i-th
and the rest are blank.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np

from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError

FIELDS = tuple(field.name for field in fields(Transitions))
REQUIRED = ("states", "actions", "rewards", "next_states")


def load(path: str | Path) -> Transitions:
    """Reads a log from a .npz, .parquet (a file or a folder of them) or .csv file.

    Raises:
        InputError: if the file is missing, empty, of another kind, or lacks a field.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"There is no file {path}.")
    if path.is_file() and path.stat().st_size == 0:
        raise InputError(f"{path} is empty.")
    kind = ".parquet" if path.is_dir() else path.suffix
    reader = {".npz": _read_npz, ".parquet": _read_parquet, ".csv": _read_csv}.get(kind)
    if reader is None:
        raise InputError(
            f"{path}: a log is a .npz, .parquet or .csv file, not {path.suffix or 'a file without suffix'!r}."
        )
    columns = reader(path)
    missing = [name for name in REQUIRED if name not in columns]
    if missing:
        raise InputError(f"{path} lacks the field {missing[0]!r}; it has {sorted(columns)}.")
    return Transitions(**{name: columns[name] for name in FIELDS if name in columns})


def save(data: Transitions, path: Path) -> None:
    """Writes a log; a half-written file is never left under the final name."""
    writer = {".npz": _write_npz, ".parquet": _write_parquet, ".csv": _write_csv}.get(path.suffix)
    if writer is None:
        raise InputError(f"{path}: a log is saved as .npz, .parquet or .csv.")
    columns = {name: getattr(data, name) for name in FIELDS if getattr(data, name) is not None}
    _write_atomically(path, lambda target: writer(columns, target))


def _write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    try:
        write(Path(name))
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, ValueError, EOFError) as error:
        raise InputError(f"{path} is not a readable .npz file ({error}).") from error


def _write_npz(columns: dict[str, np.ndarray], path: Path) -> None:
    np.savez(path, allow_pickle=False, **columns)


def _read_parquet(path: Path) -> dict[str, np.ndarray]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise InputError(f"{path} is not a readable Parquet file ({error}).") from error
    return {
        name: _from_arrow(path, name, table[name].combine_chunks()) for name in FIELDS if name in table.column_names
    }


def _from_arrow(path: Path, name: str, column) -> np.ndarray:  # noqa: ANN001 - a pyarrow array, imported lazily
    import pyarrow as pa

    if name == "initial_states":
        column = column.flatten()
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
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


def _to_arrow(array: np.ndarray):  # noqa: ANN202 - a pyarrow array, imported lazily
    import pyarrow as pa

    if array.ndim == 1:
        return pa.array(array)
    return pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])


def _read_csv(path: Path) -> dict[str, np.ndarray]:
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
    columns = {}
    for name in FIELDS:
        parts = [name] if name in table.column_names else _vector_columns(name, table.column_names)
        if not parts:
            continue
        arrays = [_csv_column(path, part, table[part].combine_chunks(), name == "initial_states") for part in parts]
        array = arrays[0] if parts == [name] else np.stack(arrays, axis=1)
        columns[name] = array.astype(types[name]) if name in types else array
    return columns


def _csv_column(path: Path, name: str, column, short: bool) -> np.ndarray:  # noqa: ANN001 - a pyarrow array, imported lazily
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
                f"CSV has one row a transition, so it cannot hold {len(array)} initial states beside {n} transitions. "
                "Save as .npz or .parquet."
            )
        parts = {name: array} if array.ndim == 1 else {f"{name}_{k}": array[:, k] for k in range(array.shape[1])}
        for part, values in parts.items():
            table[part] = pa.array(np.pad(values, (0, n - len(values))), mask=np.arange(n) >= len(values))
    with path.open("wb") as stream:
        stream.write(b"#" + json.dumps({name: str(array.dtype) for name, array in columns.items()}).encode() + b"\n")
        csv.write_csv(pa.table(table), stream)
