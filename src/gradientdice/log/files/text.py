"""Columns of text: the numbers that they write, the times that order rows, or words; never a mixture in silence.

Most cells decide what a column is. One that holds numbers but for a dash or a misspelt cell is refused with the first
such row: as words its numbers would be read by the alphabet.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gradientdice.base.errors import InputError, first_bad_row
from gradientdice.log.fields import BOOKS, FLAGS, STEPS, are_words

if TYPE_CHECKING:
    import pyarrow as pa

WHOLE = r"^[+-]?[0-9]+$"
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
# A date, with or without a time of the day, with or without a zone.
TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?)?(Z|[+-][0-9]{2}:?[0-9]{2})?$"
ZONE = r"[0-9]{2}:[0-9]{2}.*(Z|[+-][0-9]{2}:?[0-9]{2})$"
# Of the names of episodes, a smaller share that are no numbers among numbers is damage.
DAMAGED = 0.01
# Minutes between summer and winter of one zone: both are written by one clock.
SUMMER_TIME = 60
# Texts that say that there is no value, as programs write them.
MISSING = ("", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "None", "<NA>", "NaT")
ADVICE = "Write whole numbers, or dates such as 2026-11-19 or 2026-11-19T14:30:00; columns={'steps': None} leaves it."


def settled(place: object, key: str, column: object, array: np.ndarray) -> np.ndarray:
    """A column as its field takes it: flags, code books and steps have readers of their own; see `numbers_of`.

    Args:
        place: where the column is, for messages.
        key: the field, or `field.number` for one of several columns of it.
        column: the column's name.
        array: one value per row, masked where there is none.
    """
    field = key.partition(".")[0]
    if field == "episodes":
        _require_names(place, column, array)
        return array
    return array if field in (*FLAGS, *BOOKS, STEPS) else numbers_of(place, column, array)


def _require_names(place: object, column: object, array: np.ndarray) -> None:
    """Raise if very few names are no numbers: they are damaged. Names are kept as they are: 007 is not 7."""
    if array.ndim != 1 or not _is_text(array):
        return
    cells = _Cells.of(array)
    bad = ~cells.missing & ~cells.match(NUMBER)
    if 0 < bad.sum() < DAMAGED * len(bad):
        raise _damaged(place, column, cells, bad)


def _damaged(place: object, column: object, cells: _Cells, bad: np.ndarray) -> InputError:
    row, count = first_bad_row(bad), int(bad.sum())
    others = "" if count == 1 else f" ({count:,} such cells)"
    return InputError(
        f"{place}: the column {column} holds numbers, but row {row} has {cells.shown(row)}{others}. Correct or drop "
        "such rows; if its cells are names, put a letter before each."
    )


def numbers_of(place: object, column: object, array: np.ndarray) -> np.ndarray:
    """A column of text as the numbers that it writes; any other column, and one of words, as it is.

    Args:
        place: where the column is, for messages.
        column: its name.
        array: one value per row, masked where there is none.

    Raises:
        InputError: if most cells are numbers and some are not.
    """
    if array.ndim != 1 or not _is_text(array):
        return array
    cells = _Cells.of(array)
    fits, known = cells.match(NUMBER), ~cells.missing
    if not known.any() or 2 * int((fits & known).sum()) <= int(known.sum()):
        return array
    bad = known & ~fits
    if bad.any():
        raise _damaged(place, column, cells, bad)
    found = cells.numbers()
    if found is None:
        return array  # more digits than a number has: names
    return np.ma.MaskedArray(found, cells.missing) if cells.missing.any() else found


def steps_of(place: object, column: object, array: np.ndarray) -> np.ndarray:
    """A column that orders the rows of an episode, as numbers or as times.

    Args:
        place: where the column is, for messages.
        column: its name.
        array: numbers, dates, times, or texts of either.

    Raises:
        InputError: if a row has no value, or one that is neither a number nor a date.
    """
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"{place}: the steps have {array.shape[1]} numbers per row: name the one column that orders.")
    if array.dtype.kind == "O":
        array = _as_text(place, column, array)
    values, missing = np.ma.getdata(array), np.ma.getmaskarray(array)
    if array.dtype.kind in "USO":
        values, missing = _steps_of_text(place, column, _Cells.of(array))
    elif values.dtype.kind in "Mm":
        missing = missing | np.isnat(values)
    elif values.dtype.kind == "f":
        missing = missing | ~np.isfinite(values)
    elif values.dtype.kind not in "iu":
        raise InputError(f"{place}: the column {column} holds {values.dtype}, which does not order rows. {ADVICE}")
    if missing.any():
        raise InputError(
            f"{place}: the column {column} orders the rows, and row {first_bad_row(missing)} has no value in it. Fill "
            "or drop such rows."
        )
    return values


@dataclass(frozen=True, eq=False)
class _Cells:
    """A column of text by its different cells, without blanks around them.

    Attributes:
        unique: the different cells.
        code: (n,) which of them each row has.
        missing: (n,) whether a row has no value.
    """

    unique: pa.StringArray
    code: np.ndarray
    missing: np.ndarray

    @classmethod
    def of(cls, array: np.ndarray) -> _Cells:
        import pyarrow as pa
        import pyarrow.compute as pc

        hidden, cells = np.ma.getmaskarray(array), np.ma.getdata(array)
        if cells.dtype.kind == "O" and not are_words(cells[~hidden]):
            cells = np.array([str(cell) for cell in cells], dtype=object)
        text = pa.array(cells.astype(object), pa.string(), mask=hidden | (cells == None))  # noqa: E711
        found = pc.call_function("utf8_trim_whitespace", [text.fill_null("")]).dictionary_encode()
        code = found.indices.to_numpy(zero_copy_only=False)
        missing = np.isin(found.dictionary.to_numpy(zero_copy_only=False), MISSING)[code]
        return cls(found.dictionary, code, missing)

    def match(self, pattern: str) -> np.ndarray:
        """(n,) whether each row's cell has this form."""
        import pyarrow.compute as pc

        found = pc.call_function("match_substring_regex", [self.unique], pc.MatchSubstringOptions(pattern))
        return found.to_numpy(zero_copy_only=False)[self.code]

    def shown(self, row: int) -> str:
        """The cell of a row, for a message."""
        return f"{self.unique[int(self.code[row])].as_py()!r:.40}"

    def cast(self, kind: pa.DataType) -> np.ndarray:
        """The rows as another type, whatever where they have no value; `ArrowInvalid` if a cell does not fit."""
        import pyarrow as pa
        import pyarrow.compute as pc

        used = pa.array(np.isin(np.arange(len(self.unique)), self.code[~self.missing]))
        found = pc.call_function("if_else", [used, self.unique, pa.scalar(None, pa.string())]).cast(kind)
        if pa.types.is_timestamp(kind):
            return found.cast(pa.timestamp(kind.unit)).to_numpy(zero_copy_only=False)[self.code]
        return found.fill_null(0).to_numpy(zero_copy_only=False)[self.code]

    def numbers(self) -> np.ndarray | None:
        """The rows as numbers, whole ones where all are; None where one has more digits than 64 bits hold."""
        import pyarrow as pa
        import pyarrow.compute as pc

        signless = pc.ReplaceSubstringOptions("^[+]", "")
        plain = replace(self, unique=pc.call_function("replace_substring_regex", [self.unique], signless))
        try:
            return plain.cast(pa.int64() if self.match(WHOLE)[~self.missing].all() else pa.float64())
        except pa.ArrowInvalid:
            return None


def _steps_of_text(place: object, column: object, cells: _Cells) -> tuple[np.ndarray, np.ndarray]:
    """Texts as numbers or times, and where there is none."""
    import pyarrow as pa

    known = ~cells.missing
    if known.any() and cells.match(NUMBER)[known].all() and (found := cells.numbers()) is not None:
        return found, cells.missing
    number = cells.match(NUMBER)
    if 2 * int((number & known).sum()) > int(known.sum()):
        raise _damaged(place, column, cells, known & ~number)
    bad = known & ~cells.match(TIME)
    if bad.any():
        raise _no_time(place, column, cells, first_bad_row(bad))
    zoned = cells.match(ZONE) & known
    if zoned.any():
        zones = np.array([_offset(cell) for cell in cells.unique.to_pylist()])[cells.code]
        first = zones[np.argmax(known)]
        other = known & ~(np.abs(zones - first) <= SUMMER_TIME)
        if other.any():
            row = first_bad_row(other)
            raise InputError(
                f"{place}: the column {column} has times in two time zones, {cells.shown(int(np.argmax(known)))} and "
                f"{cells.shown(row)}, first in row {row}. Write all of them in one zone, such as UTC."
            )
    fine = bool(cells.match(r"[.][0-9]{7}").any())
    kind = pa.timestamp("ns" if fine else "us", "UTC" if zoned.any() else None)
    try:
        return cells.cast(kind), cells.missing
    except pa.ArrowInvalid:  # a month 13, say
        row = next(row for row in np.flatnonzero(known) if not _is_time(cells.unique[int(cells.code[row])], kind))
        raise _no_time(place, column, cells, int(row)) from None


def _is_time(cell: pa.Scalar, kind: pa.DataType) -> bool:
    import pyarrow as pa

    try:
        cell.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _no_time(place: object, column: object, cells: _Cells, row: int) -> InputError:
    return InputError(
        f"{place}: the column {column} orders the rows, and row {row} has {cells.shown(row)}, which is no number and "
        f"no date. {ADVICE}"
    )


def _offset(cell: str) -> float:
    """Minutes from UTC that a time is written in; NaN where it has no zone."""
    found = re.search(ZONE, cell)
    if found is None:
        return float("nan")
    digits = found[1].lstrip("+-Z").replace(":", "")
    minutes = 60 * int(digits[:2] or 0) + int(digits[2:] or 0)
    return -minutes if found[1].startswith("-") else minutes


def _is_text(array: np.ndarray) -> bool:
    """Text, or numbers with a text among them, as frames have them where a cell is damaged."""
    known = array.compressed() if isinstance(array, np.ma.MaskedArray) else array
    if not known.size or known.dtype.kind not in "USO":
        return False
    plain = (str, int, float, np.number)
    return are_words(known) or (
        any(isinstance(cell, str) for cell in known) and all(isinstance(cell, plain) for cell in known)
    )


def _as_text(place: object, column: object, array: np.ndarray) -> np.ndarray:
    """Dates and times of Python as the text that they write."""
    hidden, cells = np.ma.getmaskarray(array), []
    for row, cell in enumerate(np.ma.getdata(array)):
        if isinstance(cell, datetime.time):
            raise InputError(
                f"{place}: the column {column} holds times of the day, which begin anew at midnight, first in row "
                f"{row}. Write the dates with them."
            )
        absent = hidden[row] or cell is None or cell != cell  # NaN and NaT differ from themselves
        cells.append("" if absent else cell.isoformat() if isinstance(cell, datetime.date) else str(cell))
    return np.array(cells, dtype=object)
