"""`scan`: a log that stays where it is, and is read in batches as often as an answer needs it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradientdice.data.datasets.names import checked
from gradientdice.data.fields import ARRAYS, REQUIRED
from gradientdice.data.files.parquet import code_book
from gradientdice.data.files.reading import as_path, guarded, nearest, require_readable
from gradientdice.data.scan.parts import PART_ROWS, ArrowPart, Batch, FramePart, Part, batches
from gradientdice.data.scan.sample import sampled
from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError, require_count

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.dataset import Dataset, Expression

# A batch of so many rows takes a few milliseconds for a table, and tens of megabytes for tens of features.
BATCH_ROWS = 1 << 17
# Tests of what is assumed about a log look at so many of its rows.
SAMPLE_ROWS = 100_000


@dataclass(frozen=True, eq=False)
class ScannedLog:
    """A log that is read in batches. `scan` makes it; `evaluate`, `sweep` and `Moments.from_transitions` take it.

    Attributes:
        parts: what is read by one process at a time.
        columns: field -> the name of its column, for the fields that the log has.
        batch_rows: about how many rows are in memory at a time.
        client: a Dask client whose workers read the parts; None reads them here.
        action_names: the word of each action's code, where the log had words.
    """

    parts: tuple[Part, ...]
    columns: dict[str, str]
    batch_rows: int = BATCH_ROWS
    client: Any = field(default=None, repr=False)
    action_names: tuple[str, ...] | None = None

    def batches(self, part: int, *fields: str) -> Iterator[Batch]:
        """The rows of one part, with the fields that every log has and those of the fields named that it has."""
        wanted = {name: column for name, column in self.columns.items() if name in (*REQUIRED, *fields)}
        return batches(self.parts[part], wanted, self.batch_rows)

    @cached_property
    def sample(self) -> Transitions:
        """The whole log where it is small, else runs of rows from all over it, as a log in memory."""
        return sampled(self, SAMPLE_ROWS)


def scan(
    source: str | Path | Dataset | pa.Table | Any,
    *,
    columns: Mapping[str, str | None] | None = None,
    filter: Expression | None = None,
    batch_rows: int = BATCH_ROWS,
    client: Any = None,
) -> ScannedLog:
    """A log that is read in batches: for logs beyond memory.

    Nothing but the files' footers is read here. `evaluate` reads the log once for the sums behind a value, and once
    more for its interval. Files of the library are checked page by page as they are read.

    Args:
        source: a Parquet file, a folder of them, a `pyarrow.dataset.Dataset` or `pyarrow.Table`, or a Dask frame.
        columns: field -> the name it has in the file, for logs that use other names; None for a field that the log
            does not have, whatever a column is called.
        filter: which rows are part of the log, by an expression of `pyarrow.dataset.field`; row groups whose statistics
            rule it out are not read.
        batch_rows: about how many rows are in memory at a time.
        client: a `distributed.Client` whose workers read the parts. They need to see the same files.

    Raises:
        InputError: if the source cannot be read, or lacks a field.

    Example:
        >>> import tempfile, numpy as np, gradientdice as gd
        >>> from pathlib import Path
        >>> mdp, target = gd.mdp.boyan_chain("continuing"), gd.TabularPolicy(np.tile([0.1, 0.9], (13, 1)))
        >>> data = mdp.sample(20_000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     data.save(Path(folder) / "log.parquet")
        ...     scanned = gd.evaluate(gd.scan(Path(folder) / "log.parquet"), target, discount=1.0)
        >>> bool(np.isclose(scanned.value, gd.evaluate(data, target, discount=1.0).value, rtol=1e-12))
        True
    """
    require_count("batch_rows", batch_rows)
    if client is not None and not (hasattr(client, "submit") and hasattr(client, "gather")):
        raise InputError(f"client must be a distributed.Client, not {type(client).__name__}.")
    renamed, left_out = _one_column_each(columns)
    if _is_dask_frame(source):
        if filter is not None:
            raise InputError("filter= is for files and Arrow datasets: filter the Dask frame itself.")
        frame: Any = source
        parts, present, words = _frame_parts(frame), [str(name) for name in frame.columns], None
        place = "the Dask frame"
    else:
        place, dataset = _as_dataset(source)
        _require_expression(filter)
        parts, present, words = guarded(Path(place), "a readable dataset", lambda: _arrow_parts(dataset, filter))
    wanted = {name: renamed.get(name, name) for name in ARRAYS if name not in left_out}
    found = {name: column for name, column in wanted.items() if column in present}
    for name in (*renamed, *REQUIRED):
        if name not in found:
            column = renamed.get(name, name)
            raise InputError(
                f"{place} has no column {column!r}; {nearest(column, present)}. If {name} has another name there, say "
                f"so: columns={{{name!r}: '…'}}."
            )
    if not parts:
        raise InputError(f"{place} has no rows{'' if filter is None else ' that the filter lets through'}.")
    return ScannedLog(parts, found, batch_rows, client, None if words is None else tuple(words))


def _one_column_each(columns: Any) -> tuple[dict[str, str], set[str]]:
    """The columns that a user named, and the fields that the log was said not to have."""
    given, left_out = checked(columns)
    for name, column in given.items():
        if not (isinstance(column, str) and name in ARRAYS):
            raise InputError(
                f"scan reads one column per field of a log, and columns has {name!r}: {column!r:.60}. Join them to a "
                "list in the file, or load the log."
            )
    return {name: column for name, column in given.items() if isinstance(column, str)}, left_out


def _is_dask_frame(source: object) -> bool:
    return type(source).__module__.startswith(("dask.", "dask_expr.")) and hasattr(source, "to_delayed")


def _frame_parts(frame: Any) -> tuple[Part, ...]:
    return tuple(
        FramePart(partition, f"partition {number} of the Dask frame")
        for number, partition in enumerate(frame.to_delayed())
    )


def _as_dataset(source: Any) -> tuple[str, Dataset]:
    """A dataset, and what to call it."""
    import pyarrow as pa
    from pyarrow import dataset

    if isinstance(source, dataset.Dataset):
        return "the dataset", source
    if isinstance(source, pa.Table):
        return "the table", dataset.dataset(source)
    if not isinstance(source, (str, os.PathLike)):
        raise InputError(
            "source must be a Parquet file, a folder of them, a pyarrow dataset or table, or a Dask frame, not "
            f"{type(source).__name__}."
        )
    place = as_path(source)
    folder = require_readable(place)
    if not folder and place.suffix != ".parquet":
        raise InputError(
            f"{place}: scan reads Parquet. Load the log and save it as .parquet, or give a pyarrow dataset of it."
        )
    verified = dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
    kind = dataset.ParquetFileFormat(default_fragment_scan_options=verified)
    folders = "hive" if folder else None
    return str(place), guarded(
        place,
        "a readable Parquet file or folder",
        lambda: dataset.dataset(place, format=kind, partitioning=folders),
    )


def _require_expression(chosen: object) -> None:
    """An error unless this is a filter, or None."""
    from pyarrow import dataset

    if chosen is not None and not isinstance(chosen, dataset.Expression):
        raise InputError(
            "filter must be an expression of pyarrow.dataset.field, such as field('day') >= 200, not "
            f"{type(chosen).__name__}."
        )


def _arrow_parts(dataset: Dataset, chosen: Expression | None) -> tuple[tuple[Part, ...], list[str], list[str] | None]:
    """The parts of a dataset, the names of its columns, and the words of its actions' codes."""
    import pyarrow as pa

    # Files may differ in the width of their numbers: the wider type holds for all.
    fragments = list(dataset.get_fragments(filter=chosen))
    schema = dataset.schema
    if fragments:
        schema = pa.unify_schemas([part.physical_schema for part in fragments], promote_options="permissive")
        for name in dataset.schema.names:  # columns that the folders' names give
            if name not in schema.names:
                schema = schema.append(dataset.schema.field(name))
    parts: list[Part] = []
    for number, fragment in enumerate(fragments):
        path = getattr(fragment, "path", "") or f"fragment {number} of the dataset"
        for piece, groups in _pieces(fragment, chosen):
            parts.append(ArrowPart(piece, schema, chosen, f"{path}{groups}"))
    words = code_book("the log", fragments, "action_names") if fragments else None
    return tuple(parts), schema.names, words


def _pieces(fragment: Any, chosen: Expression | None) -> Iterator[tuple[Any, str]]:
    """A file in pieces of some row groups each, and which they are."""
    if not hasattr(fragment, "split_by_row_group"):
        yield fragment, ""
        return
    waiting, rows = [], 0
    for one in fragment.split_by_row_group(chosen):
        group = one.row_groups[0]
        if not group.num_rows:
            continue
        if waiting and rows + group.num_rows > PART_ROWS:
            yield fragment.subset(row_group_ids=waiting), f" row groups {waiting[0]} to {waiting[-1]}"
            waiting, rows = [], 0
        waiting.append(group.id)
        rows += group.num_rows
    if waiting:
        yield fragment.subset(row_group_ids=waiting), f" row groups {waiting[0]} to {waiting[-1]}"


def fingerprint(log: ScannedLog) -> list[list[Any]]:
    """What the log's parts are: their names and, of files, size and time of change."""
    marks = []
    for part in log.parts:
        path = getattr(getattr(part, "fragment", None), "path", "")
        found = os.stat(path) if path and os.path.exists(path) else None
        marks.append([part.name, *((found.st_size, found.st_mtime_ns) if found else ())])
    return marks


def is_whole_number(array: np.ndarray) -> bool:
    """Whether states or actions are single whole numbers."""
    return array.ndim == 1 and array.dtype.kind in "iu"
