"""The one way into a file: it must be a regular file of a known kind, and whatever breaks in it is said in a sentence.

A reader of a format gives arrays, masked where the file has no value, and may fail in any way that damaged bytes make
it fail. Here that becomes an `InputError` that names the file.
"""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradientdice.base.errors import InputError, first_bad_row

if TYPE_CHECKING:
    from gradientdice.log.files.csv import CSV

# key -> array for the columns that are there, and the names of all columns.
Found = tuple[dict[str, np.ndarray], list[str]]
# So many names are listed; of a wider file only the nearest.
MOST_LISTED = 12


def read_columns(path: str | Path, names: dict[str, str], csv: CSV | None = None) -> Found:
    """Some columns of a file: (key -> array for those that are there, the names of all columns).

    Of `next_states` values may be missing, masked: what follows an end is not used. Elsewhere that is an error.

    Args:
        path: the file or folder.
        names: key -> the column's name; without any only the names of all columns are read.
        csv: how a CSV file is written.
    """
    from gradientdice.log.files import csv as csv_file
    from gradientdice.log.files import json_lines, npz, parquet

    place = as_path(path)
    kind = ".parquet" if require_readable(place) else kind_of(place)
    if csv is not None and kind != ".csv":
        raise InputError(f"{place} is no CSV file: leave csv= out.")
    readers: dict[str, tuple[str, Callable[[Path, dict[str, str]], Found]]] = {
        ".npz": (".npz", npz.read),
        ".parquet": ("Parquet", parquet.read),
        ".csv": ("CSV", lambda path, names: csv_file.read(path, names, csv)),
        **dict.fromkeys(json_lines.SUFFIXES, ("JSON lines", json_lines.read)),
    }
    if kind not in readers:
        raise InputError(
            f"{place}: a log is a .npz, .parquet, .csv, .jsonl or .h5 file, not "
            f"{place.suffix or 'one without suffix'!r}."
        )
    what, reader = readers[kind]
    found, present = guarded(place, f"a readable {what} file", lambda: reader(place, names))
    return filled(place, names, found), present


def is_folder(path: Path) -> bool | None:
    """Whether there is a folder; None if there is nothing that can be read, which those who read it explain."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError):
        return None


def kind_of(path: Path) -> str:
    """The suffix that says what a file is: that before .gz, if it is packed."""
    return Path(path.stem).suffix if path.suffix == ".gz" else path.suffix


def filled(place: object, names: dict[str, str], found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns without masks; an error if one has no value where one is needed."""
    for key, array in found.items():
        if not np.ma.getmaskarray(array).any():
            found[key] = np.ma.getdata(array)
        elif key != "next_states":
            row = first_bad_row(np.ma.getmaskarray(array))
            raise InputError(f"{place}: the column {names[key]} has no value in row {row}. Fill or drop such rows.")
    return found


def as_path(path: object) -> Path:
    """A file's name as a path; an error for anything else."""
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise InputError(f"path must be a file's name, not {path!r:.60}.")
    if isinstance(path, str) and "://" in path:
        raise InputError(f"{path:.100} is an address, not a file: download it first, or mount it.")
    try:
        return Path(path)
    except TypeError as error:
        raise InputError(f"path must be a file's name as text, not {path!r:.60}.") from error


def require_readable(path: Path) -> bool:
    """An error unless this is a regular file with something in it, or a folder; returns whether it is a folder."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"There is no file {path}.") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)[:100]!r} cannot be read ({reason(error)}).") from error
    if stat.S_ISDIR(found.st_mode):
        return True
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{path} is a device or a pipe, not a file: write what comes from it to a file first.")
    if found.st_size == 0:
        raise InputError(f"{path} is empty.")
    return False


def guarded(path: Path, what: str, read: Callable[[], Any]) -> Any:
    """What `read` returns; whatever else it raises becomes a sentence: damaged bytes fail in any way."""
    try:
        return read()
    except InputError:
        raise
    except PermissionError as error:
        raise InputError(f"{path} may not be read: change its permissions.") from error
    except Exception as error:
        raise InputError(f"{path} is not {what} ({reason(error)}).") from error


def reason(error: BaseException) -> str:
    """An error in at most a line."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return (text.splitlines() or [type(error).__name__])[0].rstrip(".")[:160]


def nearest(name: str, present: Sequence[str]) -> str:
    """'it has …': all columns of a narrow file, the nearest ones of a wide file."""
    if len(present) <= MOST_LISTED:
        return f"it has {sorted(present)}"
    close = difflib.get_close_matches(name, present, n=5, cutoff=0.3) or sorted(present)[:5]
    return f"of its {len(present):,} columns the nearest are {close}"
