"""Parts of a log: what is read by one process at a time, in batches that fit into memory.

The parts of a log follow from its files alone (their row groups), never from the number of workers, so that sums over
them are reduced in one order wherever they are computed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from jaxtyping import Num

from gradientdice.base.errors import InputError, first_bad_row
from gradientdice.log.files import checksums
from gradientdice.log.files.parquet import from_arrow
from gradientdice.log.files.reading import guarded
from gradientdice.log.files.text import settled
from gradientdice.log.transitions import Transitions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.dataset import Expression, Fragment

# Row groups are read together up to about so many rows: enough that what a part costs beside its rows is little, and
# few enough that an interruption loses seconds.
PART_ROWS = 1 << 22
# So many batches are decoded ahead of the one that is used.
READAHEAD = 4


class BatchRows(Transitions):
    """Rows of a log of which none need count: others of the log do. They stay in the reader's memory."""

    needs_counted_rows: ClassVar[bool] = False
    copies: ClassVar[bool] = False


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a log that follow each other.

    Attributes:
        data: the rows, without initial states.
        starts: the initial states that the file has beside them; None if it has none.
        first: the number of the first row in its part.
        made: what was computed from it already, by name.
    """

    data: Transitions
    starts: Num[np.ndarray, "m ..."] | None
    first: int
    made: dict[str, Any] = field(default_factory=dict, repr=False)

    def without_first(self, rows: int) -> Batch:
        """The same rows, of which the first so many of the part count 0 times."""
        left = rows - self.first
        if left <= 0:
            return self
        weights = np.array(self.data.row_weights)
        weights[:left] = 0.0
        return Batch(replace(self.data, weights=weights), self.starts, self.first)


class Part(Protocol):
    """A part of a log."""

    @property
    def name(self) -> str:
        """Which part of which file this is, as it was when the log was opened."""
        ...

    @property
    def numbering(self) -> int:
        """A number that is added to those of its episodes, so that each file has its own."""
        ...

    def tables(self, columns: list[str], batch_rows: int, *, threads: bool) -> Iterator[pa.Table]:
        """Its rows as Arrow tables of about this many rows, read by this thread alone or by Arrow's threads too."""
        ...


@dataclass(frozen=True, eq=False)
class ArrowPart:
    """Some row groups of a file, or another fragment of an Arrow dataset.

    Attributes:
        fragment: the fragment.
        schema: the columns of the whole dataset: those of a file may have narrower types.
        filter: which rows are part of the log; None is all.
        name: see `Part`.
        version: which file this was when the log was opened, see `version_of`.
        sums: column -> its checksum, where this is a whole file that the library wrote.
        numbering: see `Part`.
    """

    fragment: Fragment
    schema: pa.Schema
    filter: Expression | None
    name: str
    version: tuple[int, int, int] | None = None
    sums: dict[str, int] = field(default_factory=dict)
    numbering: int = 0

    @property
    def path(self) -> str:
        """The file; empty where there is none."""
        return getattr(self.fragment, "path", "")

    @property
    def least_rows(self) -> int:
        """How many rows it has, as far as that is known without reading them."""
        return 0 if self.filter is not None else sum(group.num_rows for group in self._groups)

    @property
    def _groups(self) -> Sequence[Any]:
        return getattr(self.fragment, "row_groups", None) or ()

    def pieces(self, rows: int) -> Iterator[ArrowPart]:
        """The same rows, some row groups at a time, for those who read only the first ones: Arrow decodes whole groups.

        Args:
            rows: how many a piece has at least, before the filter.
        """
        if not self._groups:
            yield self
        waiting, found = [], 0
        for group in self._groups:
            waiting.append(group.id)
            found += group.num_rows
            if found >= rows:
                yield self._piece(waiting)
                waiting, found = [], 0
        if waiting:
            yield self._piece(waiting)

    def _piece(self, groups: list[int]) -> ArrowPart:
        if len(groups) == len(self._groups):
            return self  # with the checksums of the whole
        one = self.fragment.subset(row_group_ids=groups)  # pyright: ignore[reportAttributeAccessIssue]
        return replace(self, fragment=one, sums={})

    def tables(self, columns: list[str], batch_rows: int, *, threads: bool) -> Iterator[pa.Table]:
        """Its rows; only these columns are read, and row groups that the filter rules out are not."""
        import pyarrow as pa

        scanner = self.fragment.scanner(
            schema=self.schema,
            columns=columns,
            filter=self.filter,
            batch_size=batch_rows,
            batch_readahead=READAHEAD,
            use_threads=threads,
            # Arrow's own allocators give the memory of a batch back to the system before the next one needs it, and the
            # system then clears every page anew: a tenth of the time of a pass.
            memory_pool=pa.system_memory_pool(),
        )
        waiting, rows = [], 0
        for batch in scanner.to_batches():
            # Small row groups, and filters, leave small batches: what a batch costs beside its rows would add up.
            waiting.append(batch)
            rows += batch.num_rows
            if rows >= batch_rows:
                yield pa.Table.from_batches(waiting)
                waiting, rows = [], 0
        if rows:
            yield pa.Table.from_batches(waiting)


@dataclass(frozen=True, eq=False)
class FramePart:
    """One partition of a Dask frame.

    Attributes:
        partition: the partition, a delayed pandas frame; a pandas frame where the part is read.
        name: see `Part`.
        numbering: see `Part`.
    """

    partition: Any
    name: str
    numbering: int = 0

    def tables(self, columns: list[str], batch_rows: int, *, threads: bool) -> Iterator[pa.Table]:
        """Its rows, which Dask has read."""
        import pyarrow as pa

        frame = self.partition.compute() if hasattr(self.partition, "compute") else self.partition
        for start in range(0, len(frame), batch_rows):
            yield pa.Table.from_pandas(frame.iloc[start : start + batch_rows][columns], preserve_index=False)


def version_of(path: str) -> tuple[int, int, int] | None:
    """Which file this is: its number on the disk, its size and its time of change; None if it is not on a disk here."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def batches(part: Part, columns: dict[str, str], batch_rows: int, *, threads: bool) -> Iterator[Batch]:
    """The rows of a part as checked transitions.

    Args:
        part: the part.
        columns: field -> the name of its column, for the fields to be read.
        batch_rows: about how many rows a batch has.
        threads: whether later batches are read by other threads while this one is used.
    """
    tables, first, place = part.tables(list(columns.values()), batch_rows, threads=threads), 0, Path(part.name)
    known, path = getattr(part, "sums", {}), Path(getattr(part, "path", ""))
    checks = {name: checksums.Check(path, name, known.get(name)) for name in columns.values()}
    while True:
        table = guarded(place, "a readable part of a log", lambda: next(tables, None))
        if table is None:
            break
        if not table.num_rows:
            continue
        try:
            yield _batch(place, table, columns, first, checks, part.numbering)
        except InputError as error:
            raise InputError(f"{part.name}, rows from {first} on: {error}") from error
        first += table.num_rows
    for check in checks.values():
        check.finish()


def _batch(
    place: Path,
    table: pa.Table,
    columns: dict[str, str],
    first: int,
    checks: dict[str, checksums.Check],
    numbering: int,
) -> Batch:
    fields: dict[str, np.ndarray] = {}
    for key, name in columns.items():
        if key == "initial_states":
            continue
        column = _whole(table, name)
        words = key == "episodes" and _is_text(column) and not column.null_count
        array = _named(column.to_pylist(), numbering) if words else from_arrow(place, name, column)
        checks[name].add(array)
        if key == "episodes":
            array = array + numbering if numbering and not words else array
        else:
            array = settled("this part", key, name, array)
        if isinstance(array, np.ma.MaskedArray):
            hidden = np.ma.getmaskarray(array)
            if hidden.any() and key != "next_states":
                raise InputError(
                    f"the column {name} has no value in row {first_bad_row(hidden)}. Fill or drop such rows."
                )
            array = array if hidden.any() else np.ma.getdata(array)
        fields[key] = array
    starts = _starts(place, table, columns.get("initial_states"), checks)
    return Batch(BatchRows(**fields), starts, first)


def _starts(place: Path, table: pa.Table, name: str | None, checks: dict[str, checksums.Check]) -> np.ndarray | None:
    """Initial states: any number of them, in lists over the rows or one in each row."""
    import pyarrow as pa

    if name is None:
        return None
    column = _whole(table, name)
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        column = column.flatten()
    if not len(column):
        return None
    states = from_arrow(place, name, column)
    checks[name].add(states)
    if np.ma.getmaskarray(states).any():
        raise InputError(f"the column {name} has a row without a value. Fill or drop such rows.")
    # Checked as those of any log are.
    states = np.ma.getdata(states)
    row = np.zeros((1, *states.shape[1:]))
    return Transitions(row, [0], [0.0], row, initial_states=states).initial_states


def _whole(table: pa.Table, name: str) -> pa.Array:
    """A column in one piece; copied only if it is in several."""
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _is_text(column: pa.Array) -> bool:
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _named(words: list[str], numbering: int) -> np.ndarray:
    """Names as numbers that are the same in every part: of 10⁸ names two agree with a chance of 5 in 10⁴."""
    names, index = np.unique(np.array(words, dtype=str), return_inverse=True)
    salt = numbering.to_bytes(8, "little", signed=True) if numbering else b""
    hashes = [hashlib.blake2b(name.encode(), digest_size=8, salt=salt).digest() for name in names]
    return np.frombuffer(b"".join(hashes), dtype=np.int64)[index]
