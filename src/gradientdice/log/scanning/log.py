"""`scan`: a log that stays where it is, and is read in batches as often as an answer needs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradientdice.base.errors import InputError, require_choice, require_count
from gradientdice.log.fields import ARRAYS, BOOKS, REQUIRED, STEPS
from gradientdice.log.files.reading import nearest
from gradientdice.log.formats.following import ACROSS_FILES, PER_FILE
from gradientdice.log.formats.names import HABITS, checked
from gradientdice.log.scanning.files import numbered_files, require_in_order
from gradientdice.log.scanning.opening import Opened, open_arrow
from gradientdice.log.scanning.parts import ArrowPart, Batch, FramePart, Part, batches, version_of
from gradientdice.log.scanning.sample import Sampled, sampled
from gradientdice.log.transitions import Transitions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.dataset import Dataset, Expression

# A batch of so many rows takes a few milliseconds for a table, and tens of megabytes for tens of features.
BATCH_ROWS = 1 << 17
# Tests of what is assumed about a log look at so many of its rows.
SAMPLE_ROWS = 100_000


@dataclass(frozen=True, eq=False, repr=False)
class ScannedLog:
    """A log that is read in batches. `scan` makes it; `evaluate`, `compare`, `rank`, `select` and `sweep` take it.

    Attributes:
        parts: what is read by one process at a time.
        columns: field -> the name of its column, for the fields that the log has.
        batch_rows: about how many rows are in memory at a time.
        client: a Dask client whose workers read the parts; None reads them here.
        books: the words that the log has, by their field of `Transitions`: those of codes, and those of columns.
        left_out: part -> how many of its first rows count 0 times.
        known_sample: the sample, where it was taken before rows were left out; None takes one.
    """

    parts: tuple[Part, ...]
    columns: dict[str, str]
    batch_rows: int = BATCH_ROWS
    client: Any = None
    books: dict[str, tuple[str, ...]] = field(default_factory=dict)
    left_out: Mapping[int, int] = field(default_factory=dict, repr=False)
    known_sample: Sampled | None = field(default=None, repr=False)

    @property
    def action_names(self) -> tuple[str, ...] | None:
        """The word of each action's code, where the log had words."""
        return self.books.get("action_names")

    def batches(self, part: int, *fields: str, threads: bool = True) -> Iterator[Batch]:
        """The rows of one part, with the fields that every log has and those of the fields named that it has.

        Args:
            part: the number of the part.
            fields: those to be read beside the ones that every log has.
            threads: whether later batches are read by other threads while this one is used.
        """
        wanted = {name: column for name, column in self.columns.items() if name in (*REQUIRED, *fields)}
        found = batches(self.parts[part], wanted, self.batch_rows, threads=threads)
        rows = self.left_out.get(part, 0)
        return found if rows == 0 else (batch.without_first(rows) for batch in found)

    def __repr__(self) -> str:
        return f"ScannedLog({len(self.parts):,} parts, columns={self.columns})"

    @cached_property
    def sample(self) -> Transitions:
        """The whole log where it is small, else runs of rows from all over it, as a log in memory."""
        return self._sampled.rows

    @property
    def is_sampled(self) -> bool:
        """Whether the sample is only a part of the log."""
        return bool(self._sampled.taken)

    def without_sample(self) -> ScannedLog:
        """The same log, in which the rows that the sample was taken from count 0 times."""
        return replace(self, left_out=self._sampled.taken, known_sample=self._sampled)

    @cached_property
    def _sampled(self) -> Sampled:
        return sampled(self, SAMPLE_ROWS) if self.known_sample is None else self.known_sample


def scan(
    source: str | Path | Dataset | pa.Table | Any,
    *,
    columns: Mapping[str, str | None] | None = None,
    filter: Expression | None = None,
    batch_rows: int = BATCH_ROWS,
    client: Any = None,
    episodes: str | None = None,
) -> ScannedLog:
    """A log that is read in batches: for logs beyond memory.

    Nothing but the files' footers is read here. `evaluate` reads the log once for the sums behind a value, and once
    more for its interval. Files of the library are checked as they are read: column by column up to four million rows,
    page by page beyond.

    Args:
        source: a Parquet file, a folder of them, a `pyarrow.dataset.Dataset` or `pyarrow.Table`, or a Dask frame.
        columns: field -> the name it has in the file, for logs that use other names; None for a field that the log
            does not have, whatever a column is called. A scan does not sort: with {"steps": "…"} it makes sure that
            the rows of each episode are in the order of that column.
        filter: which rows are part of the log, by an expression of `pyarrow.dataset.field`; row groups whose statistics
            rule it out are not read.
        batch_rows: about how many rows are in memory at a time.
        client: a `distributed.Client` whose workers read the parts. They need to see the same files.
        episodes: "per file" where each file numbers its episodes anew, or "across files" where an episode goes on from
            one file to another. Left out, files that share numbers are refused; where the files' footers do not rule
            that out, their column of episodes is read.

    Raises:
        InputError: if the source cannot be read, or lacks a field.

    Example:
        >>> import tempfile, numpy as np, gradientdice as gd
        >>> from pathlib import Path
        >>> mdp, target = (
        ...     gd.mdp.boyan_chain("continuing"),
        ...     gd.TabularPolicy(np.tile([0.1, 0.9], (13, 1))),
        ... )
        >>> data = mdp.sample(20_000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     data.save(Path(folder) / "log.parquet")
        ...     scanned = gd.evaluate(
        ...         gd.scan(Path(folder) / "log.parquet"), target, discount=1.0
        ...     )
        >>> bool(
        ...     np.isclose(
        ...         scanned.value, gd.evaluate(data, target, discount=1.0).value, rtol=1e-12
        ...     )
        ... )
        True
    """
    require_count("batch_rows", batch_rows)
    if client is not None and not (hasattr(client, "submit") and hasattr(client, "gather")):
        raise InputError(f"client must be a distributed.Client, not {type(client).__name__}.")
    renamed, left_out = _one_column_each(columns)
    if episodes is not None:
        require_choice("episodes", episodes, PER_FILE, ACROSS_FILES)
    wanted = {name: renamed.get(name, name) for name in ARRAYS if name not in left_out}
    wanted |= {STEPS: renamed[STEPS]} if STEPS in renamed else {}
    if _is_dask_frame(source):
        if filter is not None:
            raise InputError("filter= is for files and Arrow datasets: filter the Dask frame itself.")
        found = _open_frame(source)
    else:
        found = open_arrow(source, filter, wanted.values())
    there = {name: column for name, column in wanted.items() if column in found.present}
    for name in (*renamed, *REQUIRED):
        if name not in there:
            column = renamed.get(name, name)
            raise InputError(
                f"{found.place} has no column {column!r}; {nearest(column, found.present)}. If {name} has another name "
                f"there, say so: columns={{{name!r}: '…'}}."
            )
    _require_no_other_name(found, there, left_out)
    if not found.parts:
        raise InputError(f"{found.place} has no rows{'' if filter is None else ' that the filter lets through'}.")
    parts = numbered_files(found, there, episodes)
    if STEPS in there:
        require_in_order(parts, there)
        del there[STEPS]
    own = {name: book for name, book in found.books.items() if there.get(BOOKS[name]) == BOOKS[name]}
    return ScannedLog(parts, there, batch_rows, client, own)


def _require_no_other_name(found: Opened, there: dict[str, str], left_out: set[str]) -> None:
    """An error if a column seems to be a field under another name: without it the answer would be another one."""
    free = {column.lower(): column for column in found.present if column not in there.values()}
    for name in ARRAYS:
        column = next((free[habit] for habit in HABITS[name] if habit in free), None)
        if name not in there and name not in left_out and column is not None:
            raise InputError(
                f"{found.place} has no column {name!r}, but {column!r}, which may be it. Say columns={{{name!r}: "
                f"{column!r}}} if it is, and columns={{{name!r}: None}} if the log has no {name}."
            )


def _one_column_each(columns: Any) -> tuple[dict[str, str], set[str]]:
    """The columns that a user named, and the fields that the log was said not to have."""
    given, left_out = checked(columns)
    for name, column in given.items():
        if not (isinstance(column, str) and name in (*ARRAYS, STEPS)):
            raise InputError(
                f"scan reads one column per field of a log, and columns has {name!r}: {column!r:.60}. Join them to a "
                "list in the file, or load the log."
            )
    return {name: column for name, column in given.items() if isinstance(column, str)}, left_out


def _is_dask_frame(source: object) -> bool:
    return type(source).__module__.startswith(("dask.", "dask_expr.")) and hasattr(source, "to_delayed")


def _open_frame(frame: Any) -> Opened:
    parts = tuple(
        FramePart(partition, f"partition {number} of the Dask frame")
        for number, partition in enumerate(frame.to_delayed())
    )
    return Opened(parts, [str(name) for name in frame.columns], {}, "the Dask frame")


def require_unchanged(log: ScannedLog) -> None:
    """An error if a file of the log is another one than when the log was opened, or is gone."""
    seen: set[str] = set()
    for part in log.parts:
        if not isinstance(part, ArrowPart) or part.version is None or part.path in seen:
            continue
        seen.add(part.path)
        found = version_of(part.path)
        if found is None:
            raise InputError(f"{part.path} is no longer there. Scan the log again.")
        if found != part.version:
            raise InputError(
                f"{part.path} was changed after the log was opened, and some was read before that. Scan it again."
            )


def fingerprint(log: ScannedLog) -> list[list[Any]]:
    """What the log's parts are: their names and, of files, size and time of change."""
    return [[part.name, *(getattr(part, "version", None) or ())[1:]] for part in log.parts]
