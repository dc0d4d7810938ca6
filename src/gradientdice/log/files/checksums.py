"""Checksums of a Parquet file's columns, in its metadata: the format's own cover its pages but not their headers."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gradientdice.base.errors import InputError

if TYPE_CHECKING:
    from pyarrow.dataset import Fragment

KEY = b"gradientdice"


def written(columns: dict[str, np.ndarray]) -> bytes:
    """The metadata of a file that is about to be written."""
    sums = {name: _crc(array) for name, array in columns.items()}
    return json.dumps({"rows": len(columns["rewards"]), "checksums": sums}).encode()


@dataclass
class Check:
    """One column's check against what was written.

    Attributes:
        path: the file or folder, for the message.
        name: the column.
        expected: its checksum; None where there is none to compare with.
        found: that of the parts so far.
    """

    path: Path
    name: str
    expected: int | None
    found: int = 0

    @classmethod
    def of(cls, path: Path, fragment: Fragment, name: str) -> Check:
        """The check of a file's column; a file whose number of rows another tool changed has none."""
        return cls(path, name, known_sums(fragment).get(name))

    def add(self, part: np.ndarray) -> None:
        """The next part of the column, in the order of the rows."""
        if self.expected is not None:
            self.found = _crc(part, self.found)

    def finish(self) -> None:
        """An error if the column is another one than that which was written."""
        if self.expected is not None and self.found != self.expected:
            raise InputError(
                f"{self.path}: the column {self.name} is not the one that was written: the file is damaged. If another "
                f"tool changed it, let it drop the metadata {KEY.decode()!r}."
            )


def known_sums(fragment: Fragment) -> dict[str, int]:
    """Column -> checksum as it was written; nothing for a file whose number of rows another tool changed."""
    rows, sums = _known(fragment)
    return sums if rows == fragment.count_rows() else {}


def require_names(path: Path, fragment: Fragment) -> None:
    """An error if a column has another name than was written: it would not be missed. One may have been dropped."""
    present, (rows, sums) = fragment.physical_schema.names, _known(fragment)
    if rows < 0 and KEY in _metadata(fragment):
        raise InputError(f"{path} is damaged: its metadata {KEY.decode()!r} cannot be read.")
    lost = [name for name in sums if name not in present]
    if lost and len(present) >= len(sums):
        raise InputError(
            f"{path}: the column {lost[0]} has another name than was written: the file is damaged. If another tool "
            f"renamed it, let it drop the metadata {KEY.decode()!r}."
        )


def _known(fragment: Fragment) -> tuple[int, dict[str, int]]:
    """The number of rows and the columns' checksums as they were written; nothing if the file does not say."""
    try:
        known = json.loads(_metadata(fragment)[KEY])
        return int(known["rows"]), dict(known["checksums"])
    except (KeyError, ValueError, TypeError):
        return -1, {}


def _metadata(fragment: Fragment) -> dict[bytes, bytes]:
    """What the file says of itself. Parquet has it twice, in Arrow's copy of the schema too, which Arrow reads."""
    found = fragment.physical_schema.metadata or {}
    footer = None if KEY in found else getattr(fragment, "metadata", None)
    return found if footer is None else footer.metadata or found


def _crc(array: np.ndarray, before: int = 0) -> int:
    return zlib.crc32(np.ascontiguousarray(np.ma.getdata(array)).view(np.uint8).data, before)
