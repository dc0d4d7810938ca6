"""One table of numbers from a .csv, .npy or .npz file, as a policy is given."""

from __future__ import annotations

import math
import os
import warnings
import zipfile
from pathlib import Path

import numpy as np

from gradientdice.base.arrays import as_floats
from gradientdice.base.errors import InputError
from gradientdice.log.files import npz
from gradientdice.log.files.reading import as_path, guarded, require_readable

SUFFIXES = (".csv", ".npy", ".npz")


def read_table(path: str | Path) -> np.ndarray:
    """The table, with two dimensions; an error for anything that is not one table of numbers."""
    place = as_path(path)
    if require_readable(place) or place.suffix not in SUFFIXES:
        raise InputError(f"{place} must be a .csv, .npy or .npz file with a table of numbers.")
    reader = {".csv": _from_csv, ".npy": _from_npy, ".npz": _from_npz}[place.suffix]
    table = guarded(place, "a table of numbers, one row per state", lambda: reader(place))
    table = np.atleast_2d(as_floats(f"{place}: the table", table))
    if table.ndim != 2 or table.size == 0:
        raise InputError(f"{place} must have one row per state and one column per action, not shape {table.shape}.")
    return table


def _from_csv(path: Path) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a file without numbers, which is refused
        return np.loadtxt(path, delimiter=",", comments="#", ndmin=2, encoding="utf-8-sig")


def _from_npy(path: Path) -> np.ndarray:
    with path.open("rb") as stream:
        version = np.lib.format.read_magic(stream)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, kind = header(stream)
        size = os.fstat(stream.fileno()).st_size - stream.tell()
        if math.prod(shape) * kind.itemsize != size and not kind.hasobject:
            raise InputError(f"{path} claims the shape {shape}, which its size does not fit: it is damaged.")
        stream.seek(0)
        return np.load(stream, allow_pickle=False)


def _from_npz(path: Path) -> np.ndarray:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if len(names) != 1:
            raise InputError(f"{path} has {len(names)} arrays, and a policy is one table: save it alone.")
        return npz.read_array(path, archive, names[0].removesuffix(npz.SUFFIX))
