"""The Parquet format, a file or a folder of files.

The files of a folder need the same columns; where their types differ the wider one holds for all.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.log.fields import BOOKS
from gradientdice.log.files import checksums
from gradientdice.log.files.reading import Found, guarded
from gradientdice.log.files.text import settled
from gradientdice.log.files.vectors import parts_of, side_by_side

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.dataset import Dataset, Fragment, ParquetFileFormat

BATCH_ROWS = 65_536
# Whole numbers up to here are floats too.
EXACT_BELOW = 2**53
# How every Parquet file begins, and the names of what Arrow leaves out of a folder.
MAGIC = b"PAR1"
HIDDEN = (".", "_")
# The code books in a file's metadata.
CODES = b"gradientdice.names"


def read(path: Path, names: dict[str, str]) -> Found:
    """The columns of these names, in one piece each; those of a vector may be name_0, name_1, …."""
    fragments = fragments_of(path)
    before = _versions(path, fragments)
    for fragment in fragments:
        checksums.require_names(path, fragment)
    folders = list(_folder_values(fragments[0]))
    present = [*fragments[0].physical_schema.names, *folders]
    present += sorted({name for part in fragments for name in part.physical_schema.names}.difference(present))
    found = {}
    for key, name in names.items():
        if name in BOOKS and name not in present:
            if (book := code_book(path, fragments, name)) is not None:
                found[key] = np.array(book)
        elif name in folders:
            found[key] = np.concatenate([np.full(part.count_rows(), _folder_values(part)[name]) for part in fragments])
        elif key.startswith("initial_") and name in present:
            require_in_all(path, fragments, name)
            found[key] = _spread(path, name, fragments)
        elif parts := parts_of(path, name, present):
            for part in parts:
                require_in_all(path, fragments, part)
            columns = [settled(path, key, part, _column(path, part, fragments)) for part in parts]
            found[key] = columns[0] if parts == [name] else side_by_side(columns)
    if _versions(path, fragments) != before:
        raise InputError(f"{path}: a file of the folder was replaced while it was read. Read it again.")
    return found, present


def fragments_of(path: Path) -> list[Fragment]:
    """The files. A single one is opened once: another process may put another in its place between two columns."""
    import pyarrow as pa

    if not path.is_dir():
        single = _verified().make_fragment(pa.OSFile(str(path)))
        require_counts(path, single)
        return [single]
    return opened(list(dataset_of(path).get_fragments()))


def dataset_of(path: Path) -> Dataset:
    """A file or a folder as a dataset; an error that names the first file that is no Parquet."""
    from pyarrow import dataset

    if path.is_dir():
        _require_only_parquet(path)
    options: Any = {"format": _verified(), "partitioning": "hive" if path.is_dir() else None}
    try:
        found = dataset.dataset(path, **options)
    except Exception:
        import pyarrow as pa

        # With a schema given no file is read: those that can be listed can be tried one by one.
        opened(list(dataset.dataset(path, schema=pa.schema([]), **options).get_fragments()))
        raise
    if not found.files:
        raise InputError(f"{path} is a folder without Parquet files.")
    return found


def _require_only_parquet(folder: Path) -> None:
    """An error that names the first file of a folder, or of those in it, that is something else.

    Arrow would first list all there are, for minutes where somebody gave the root of a disk.
    """
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(HIDDEN))
        for name in sorted(files):
            path = Path(place) / name
            if name.startswith(HIDDEN) or not path.is_file():
                continue
            with guarded(path, "a readable Parquet file", lambda path=path: path.open("rb")) as stream:
                if stream.read(len(MAGIC)) != MAGIC:
                    raise InputError(f"{path} is not a readable Parquet file: take it out of the folder.")


def opened(fragments: list[Fragment]) -> list[Fragment]:
    """The files themselves; an error that names the first whose description is damaged."""
    for fragment in fragments:
        if getattr(fragment, "path", ""):
            guarded(
                Path(fragment.path), "a readable Parquet file", lambda one=fragment: require_counts(Path(one.path), one)
            )
    return fragments


def require_counts(path: Path, fragment: Any) -> None:
    """An error unless the numbers of rows in a file's description agree: a wrong one would leave rows out."""
    if fragment.physical_schema is None or not hasattr(fragment, "metadata"):  # the first reads the description
        return
    about = fragment.metadata
    # No look at the columns: a damaged description of one ends the whole process there.
    if sum(about.row_group(number).num_rows for number in range(about.num_row_groups)) != about.num_rows:
        raise InputError(f"{path} is damaged: the numbers of rows in its description differ.")


def _verified() -> ParquetFileFormat:
    """Files of the library have checksums; in others there is nothing to verify."""
    from pyarrow import dataset

    options = dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
    return dataset.ParquetFileFormat(default_fragment_scan_options=options)


def _versions(path: Path, fragments: list[Fragment]) -> list[tuple[int, int, int]]:
    """Which files a folder has now: they may be too many to keep all of them open."""
    if not path.is_dir():
        return []
    found = [os.stat(fragment.path) for fragment in fragments]
    return [(one.st_ino, one.st_size, one.st_mtime_ns) for one in found]


def code_book(path: object, fragments: list[Fragment], name: str) -> list[str] | None:
    """A code book in the metadata; an error if the files of a folder differ in theirs."""
    found = [json.loads((part.physical_schema.metadata or {}).get(CODES, b"{}")).get(name) for part in fragments]
    if any(book != found[0] for book in found):
        raise InputError(f"{path}: its files have different {name}: read them apart.")
    return found[0]


def _folder_values(fragment: Fragment) -> dict[str, Any]:
    """What the names of the folders say: in episode=3/a.parquet that every row's episode is 3."""
    from pyarrow import dataset

    return dataset.get_partition_keys(fragment.partition_expression)


def require_in_all(path: object, fragments: list[Fragment], name: str) -> None:
    """An error if a file lacks this column that others have, or has it twice."""
    counts = [fragment.physical_schema.names.count(name) for fragment in fragments]
    if max(counts) > 1:
        raise InputError(f"{path} has two columns named {name!r}: rename or drop one of them.")
    if 0 in counts:
        file = Path(getattr(fragments[counts.index(0)], "path", "one of them")).name
        raise InputError(
            f"{path}: {file} lacks the column {name!r}, which other files of the folder have. Add it there, or read "
            "the files apart."
        )


def _column(path: Path, name: str, fragments: list[Fragment]) -> np.ndarray:
    """A column of all files as one array of the widest type, filled batch by batch: never in memory twice."""
    types = [fragment.physical_schema.field(name).type for fragment in fragments]
    rows = sum(fragment.count_rows() for fragment in fragments)
    kind = np.result_type(*(_numpy_kind(type) for type in types))
    result, hidden, start = None, None, 0
    for fragment in fragments:
        check = checksums.Check.of(path, fragment, name)
        for batch in fragment.to_batches(columns=[name], batch_size=BATCH_ROWS, batch_readahead=1):
            if not batch.num_rows:
                continue
            part = from_arrow(path, name, batch.column(0))
            result = np.empty((rows, *part.shape[1:]), dtype=kind) if result is None else result
            if part.shape[1:] != result.shape[1:]:
                raise InputError(f"{path}: the lists in column {name} differ in length.")
            check.add(part)
            stop = start + len(part)
            result[start:stop] = _exact(path, name, np.ma.getdata(part), kind)
            if isinstance(part, np.ma.MaskedArray):
                hidden = np.zeros(result.shape, dtype=bool) if hidden is None else hidden
                hidden[start:stop] = part.mask
            start = stop
        check.finish()
    if result is None:
        raise InputError(f"{path} has no rows.")
    if start != rows:
        raise InputError(f"{path} is damaged: its column {name} has {start} rows, not {rows}.")
    return result if hidden is None else np.ma.MaskedArray(result, hidden)


def _numpy_kind(type: pa.DataType) -> np.dtype:
    """NumPy's type for the numbers of a column."""
    import pyarrow as pa

    while pa.types.is_fixed_size_list(type) or pa.types.is_list(type) or pa.types.is_large_list(type):
        type = type.value_type
    if pa.types.is_struct(type):
        return np.result_type(*(_numpy_kind(part.type) for part in type))
    return from_arrow(Path(), "", pa.array([], type)).dtype


def _exact(path: Path, name: str, part: np.ndarray, kind: np.dtype) -> np.ndarray:
    """An error if whole numbers of one file lose digits among the floats of another."""
    if part.dtype.kind in "iu" and kind.kind == "f" and part.size and np.abs(part).max() > EXACT_BELOW:
        raise InputError(f"{path}: {name} has whole numbers beyond 2⁵³ in one file and floats in another: renumber it.")
    return part


def _spread(path: Path, name: str, fragments: list[Fragment]) -> np.ndarray:
    """Initial states: any number of them, in lists over the rows or one in each row."""
    import pyarrow as pa

    parts = []
    for fragment in fragments:
        column = fragment.to_table(columns=[name])[name].combine_chunks()
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            column = column.flatten()
        if len(column):
            parts.append(from_arrow(path, name, column))
            check = checksums.Check.of(path, fragment, name)
            check.add(parts[-1])
            check.finish()
    if not parts:
        raise InputError(f"{path}: the column {name} has no values: drop it, or fill it.")
    if any(part.shape[1:] != parts[0].shape[1:] for part in parts):
        raise InputError(f"{path}: the lists in column {name} differ in length.")
    return parts[0] if len(parts) == 1 else np.ma.concatenate(parts)


def from_arrow(path: object, name: str, column: pa.Array) -> np.ndarray:
    """A column as an array, masked where there is no value: a list without one, or a list with a gap.

    The parts of a dictionary are joined in the order of their names.
    """
    import pyarrow as pa

    kind = column.type
    if pa.types.is_struct(kind):
        parts = {part.name: values for part, values in zip(kind, column.flatten(), strict=True)}
        return side_by_side([from_arrow(path, f"{name}.{part}", parts[part]) for part in sorted(parts)])
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _vectors(path, name, column)
    if pa.types.is_dictionary(kind):
        # Arrow cannot decode words that are views, as polars has them.
        words = column.dictionary.cast(pa.string()) if pa.types.is_string_view(kind.value_type) else column.dictionary
        column = pa.DictionaryArray.from_arrays(column.indices, words).dictionary_decode()
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    if not column.null_count:
        return column.to_numpy(zero_copy_only=False)
    hidden = column.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_null(column.type):
        return np.ma.MaskedArray(np.zeros(len(column)), hidden)
    known = column.drop_null().to_numpy(zero_copy_only=False)
    values = np.zeros(len(column), dtype=known.dtype)
    values[~hidden] = known
    return np.ma.MaskedArray(values, hidden)


def _vectors(path: object, name: str, column: pa.Array) -> np.ndarray:
    import pyarrow as pa

    if pa.types.is_fixed_size_list(column.type) and not column.null_count and len(column) and column.type.list_size:
        # Nothing to look for: a large log has most of its numbers in such columns.
        values = from_arrow(path, name, column.flatten())
        return values.reshape(len(column), -1)
    hidden = column.is_null().to_numpy(zero_copy_only=False)
    lists = column.drop_null()
    values = from_arrow(path, name, lists.flatten())
    counts = lists.value_lengths().to_numpy(zero_copy_only=False) if len(lists) else np.zeros(0, dtype=np.int64)
    if values.ndim != 1 or len(counts) == 0 or (counts != counts[0]).any() or counts[0] == 0:
        raise InputError(f"{path}: the lists in column {name} differ in length, or have none.")
    rows = values.reshape(len(lists), -1)
    if not hidden.any():
        return rows
    whole = np.zeros((len(column), rows.shape[1]), dtype=rows.dtype)
    whole[~hidden] = np.ma.getdata(rows)
    mask = np.ones(whole.shape, dtype=bool)
    mask[~hidden] = np.ma.getmaskarray(rows)
    return np.ma.MaskedArray(whole, mask)


def write(columns: dict[str, np.ndarray], path: Path, books: dict[str, list[str]]) -> None:
    """Writes a table with fixed-size lists for vectors, the code books in its metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n = len(columns["rewards"])
    arrays = {name: _to_arrow(array) for name, array in columns.items() if name != "initial_states"}
    if "initial_states" in columns:
        initial = columns["initial_states"]
        offsets = (np.arange(n + 1, dtype=np.int64) * len(initial) + n - 1) // n
        arrays["initial_states"] = pa.LargeListArray.from_arrays(offsets, _to_arrow(initial))
    metadata = {checksums.KEY: checksums.written(columns)} | ({CODES: json.dumps(books).encode()} if books else {})
    table = pa.table(arrays).replace_schema_metadata(metadata)
    pq.write_table(table, path, write_page_checksum=True)


def _to_arrow(array: np.ndarray) -> pa.Array:
    import pyarrow as pa

    if array.ndim == 1:
        return pa.array(array)
    return pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])


def types_of(path: Path) -> dict[str, pa.DataType]:
    """What each column holds, in the first file of a folder."""
    schema = fragments_of(path)[0].physical_schema
    return dict(zip(schema.names, schema.types, strict=True))


def file_rows(path: Path) -> tuple[tuple[str, int], ...]:
    """The files of a folder in the order in which they are read, and how many rows each has; none for a single file."""
    if not path.is_dir():
        return ()
    return tuple((Path(part.path).name, part.count_rows()) for part in fragments_of(path) if part.count_rows())


def read_table(path: Path) -> pa.Table:
    """The whole file or folder."""
    from pyarrow import dataset

    return dataset.dataset(path, format="parquet", partitioning="hive").to_table()
