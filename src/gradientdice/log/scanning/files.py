"""Several files as one scanned log: the numbers of their episodes, and the order of their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.log.fields import STEPS
from gradientdice.log.files.parquet import from_arrow
from gradientdice.log.files.reading import guarded
from gradientdice.log.files.text import steps_of
from gradientdice.log.formats.following import ACROSS_FILES, PER_FILE, shared_number
from gradientdice.log.scanning.opening import Opened
from gradientdice.log.scanning.parts import ArrowPart, Part

if TYPE_CHECKING:
    import pyarrow as pa

# Rows that are read at a time.
BATCH_ROWS = 1 << 17


def numbered_files(opened: Opened, columns: dict[str, str], how: str | None) -> tuple[Part, ...]:
    """The parts of a log, with numbers of their own for the episodes of each file if that was said.

    Args:
        opened: the log.
        columns: field -> the name of its column.
        how: "per file", "across files", or None if nothing was said.

    Raises:
        InputError: if two files share the number of an episode, nothing was said, and it does not go on from one to
            the next.
    """
    files = _files(opened)
    name = columns.get("episodes")
    if name is None or len(files) < 2 or not all(name in file.physical for file in files):
        if how is not None:
            raise InputError(
                f"{opened.place}: episodes={how!r} is for several Parquet files with a column of episodes. Leave it "
                "out."
            )
        return opened.parts
    if how == ACROSS_FILES:
        return opened.parts
    ranges = [file.range(name) for file in files]
    if how == PER_FILE:
        return tuple(part for file, shift in zip(files, _shifts(ranges), strict=True) for part in file.numbered(shift))
    if not _are_apart(ranges):
        _require_apart(opened.place, files, name, columns)
    return opened.parts


def require_in_order(parts: tuple[Part, ...], columns: dict[str, str]) -> None:
    """Raise if the rows of an episode do not come in the order of their steps, or have one twice."""
    episodes, steps = columns.get("episodes"), columns[STEPS]
    if episodes is None:
        raise InputError(f"The column {steps} orders the rows of episodes, and the log has none: leave it out.")
    for part in parts:
        last: tuple[Any, Any] | None = None
        first_row = 0
        for table in _tables(part, [episodes, steps]):
            own = np.array(table.column(0).to_pylist(), dtype=object)
            when = steps_of(part.name, steps, from_arrow(part.name, steps, table.column(1).combine_chunks()))
            if last is not None:
                own, when = np.append(last[0], own), np.append(np.array([last[1]], dtype=when.dtype), when)
            back = (own[1:] == own[:-1]) & (when[1:] <= when[:-1])
            if back.any():
                at = int(np.argmax(back)) + 1
                raise InputError(
                    f"{part.name}: {steps} goes from {when[at - 1]} to {when[at]} within episode {own[at]}, in row "
                    f"{first_row + at - (last is not None)}. Sort the file by episode and {steps}, or load it: "
                    "gradientdice.load sorts."
                )
            last, first_row = (own[-1], when[-1]), first_row + table.num_rows


@dataclass(frozen=True, eq=False)
class _File:
    """The parts of one file."""

    name: str
    parts: tuple[ArrowPart, ...]

    @property
    def physical(self) -> list[str]:
        """The columns that are in the file itself, not in the names of folders."""
        return self.parts[0].fragment.physical_schema.names

    def range(self, column: str) -> tuple[Any, Any] | None:
        """The least and the largest value of a column, from the file's footer; None where it does not say."""
        found = []
        for part in self.parts:
            for group in getattr(part.fragment, "row_groups", None) or ():
                seen = (group.statistics or {}).get(column)
                if seen is None or seen.get("min") is None or seen.get("max") is None:
                    return None
                found.append((seen["min"], seen["max"]))
        return None if not found else (min(low for low, _ in found), max(high for _, high in found))

    def values(self, column: str) -> np.ndarray:
        """The different values of a column."""
        found = [table.column(0).unique().to_pylist() for part in self.parts for table in _tables(part, [column])]
        return np.unique(np.array([str(value) for values in found for value in values]))

    def edge(self, columns: list[str], *, last: bool) -> dict[str, Any]:
        """The first row of the file, or its last."""
        row: dict[str, Any] = {}
        for table in _tables(self.parts[-1 if last else 0], columns):
            row = {name: table.column(name)[-1 if last else 0].as_py() for name in columns}
            if not last:
                break
        return row

    def numbered(self, shift: int) -> list[ArrowPart]:
        """The parts with another number added to those of their episodes."""
        return [replace(part, numbering=shift) for part in self.parts]


def _files(opened: Opened) -> list[_File]:
    parts = [part for part in opened.parts if isinstance(part, ArrowPart) and part.path]
    if len(parts) < len(opened.parts):
        return []
    return [_File(Path(path).name, tuple(own)) for path, own in groupby(parts, key=lambda part: part.path)]


def _tables(part: Part, columns: list[str]) -> Iterator[pa.Table]:
    tables = part.tables(columns, BATCH_ROWS, threads=True)
    while True:
        table = guarded(Path(part.name), "a readable part of a log", lambda: next(tables, None))
        if table is None:
            return
        if table.num_rows:
            yield table


def _shifts(ranges: list[tuple[Any, Any] | None]) -> list[int]:
    """What is added to the numbers of each file, so that they increase from file to file."""
    shifts, end = [], 1
    for number, found in enumerate(ranges):
        if found is None or not isinstance(found[0], int):
            shifts.append((number + 1) << 40)  # names are hashed with it, and other numbers seldom are so large
            continue
        shifts.append(end - found[0])
        end += found[1] - found[0] + 1
    return shifts


def _are_apart(ranges: list[tuple[Any, Any] | None]) -> bool:
    """Whether no value can be in two files."""
    known = sorted(found for found in ranges if found is not None)
    return len(known) == len(ranges) and all(left[1] < right[0] for left, right in pairwise(known))


def _require_apart(place: str, files: list[_File], name: str, columns: dict[str, str]) -> None:
    """Raise at the first value that is in two files, unless an episode goes on from the one to the next."""
    values = [file.values(name) for file in files]
    every, file = np.concatenate(values), np.repeat(np.arange(len(files)), [len(own) for own in values])
    order = np.lexsort((file, every))
    every, file = every[order], file[order]
    for at in np.flatnonzero(every[1:] == every[:-1]):
        first, second = files[file[at]], files[file[at + 1]]
        if file[at + 1] != file[at] + 1 or not _goes_on(first, second, columns, every[at]):
            raise shared_number(place, every[at], first.name, second.name)


def _goes_on(first: _File, second: _File, columns: dict[str, str], episode: str) -> bool:
    """Whether the last row of a file and the first of another are steps of this episode that follow each other."""
    used = [columns[name] for name in ("episodes", "states", "next_states", "terminated") if name in columns]
    before, after = first.edge(used, last=True), second.edge(used, last=False)
    if {str(row[columns["episodes"]]) for row in (before, after)} != {episode}:
        return False
    if "terminated" in columns and before[columns["terminated"]]:
        return False
    return before[columns["next_states"]] == after[columns["states"]]
