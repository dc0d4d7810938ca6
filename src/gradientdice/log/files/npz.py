"""The .npz format: arrays by name in a zip archive; pickles are never read.

The headers are checked before anything is unpacked, so that a file that claims 10¹⁵ numbers takes no memory.
"""

from __future__ import annotations

import math
import os
import zipfile
from collections import Counter
from pathlib import Path
from typing import BinaryIO

import numpy as np

from gradientdice.base.arrays import require_memory
from gradientdice.base.errors import InputError
from gradientdice.log.files.reading import Found
from gradientdice.log.files.text import settled

# Deflate cannot shrink further than this: an archive that claims more is damaged or a bomb.
MOST_COMPRESSION = 1100
SUFFIX = ".npy"
# A zip archive ends with so many bytes, which say how many members it has, or that they are more than 16 bits count.
END_BYTES, MANY = 22, 0xFFFF


def read(path: Path, names: dict[str, str]) -> Found:
    """The arrays of these names."""
    # Opened once: another process may put another file in its place meanwhile.
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        members = archive.namelist()
        twice = [name for name, count in Counter(members).items() if count > 1]
        if twice:
            raise InputError(f"{path} has two members named {twice[0]!r}: delete one of them.")
        _check_directory(path, file, archive)
        present = [name.removesuffix(SUFFIX) for name in members if name.endswith(SUFFIX)]
        found = {key: read_array(path, archive, name) for key, name in names.items() if name in present}
        return {key: settled(path, key, names[key], array) for key, array in found.items()}, present


def _check_directory(path: Path, file: BinaryIO, archive: zipfile.ZipFile) -> None:
    """An error if the directory at the end of the file is damaged: an array whose name is lost would not be missed."""
    for information in archive.infolist():
        archive.open(information).close()  # compares its name with the one before its content
    file.seek(max(0, file.seek(0, os.SEEK_END) - END_BYTES))
    end = file.read()
    count = int.from_bytes(end[10:12], "little")
    if end.startswith(b"PK\x05\x06") and count not in (len(archive.infolist()), MANY):
        raise InputError(f"{path} is damaged: it has {len(archive.infolist())} of {count} arrays.")


def read_array(path: Path, archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """One array, after a look at what its header claims."""
    information = archive.getinfo(name + SUFFIX)
    if information.file_size > MOST_COMPRESSION * information.compress_size + MOST_COMPRESSION:
        raise InputError(f"{path}: {name} claims more bytes than {information.compress_size} packed ones can hold.")
    with archive.open(information) as stream:
        version = np.lib.format.read_magic(stream)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, kind = header(stream)
        if kind.hasobject:
            raise InputError(f"{path}: {name} holds Python objects, which are never read. Save it as numbers.")
        if math.prod(shape) * kind.itemsize != information.file_size - stream.tell():
            raise InputError(f"{path}: {name} claims the shape {shape}, which its size does not fit: it is damaged.")
    require_memory(f"{path}: {name}", *shape, remedy="Read a part of it.")
    with archive.open(information) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def write(columns: dict[str, np.ndarray], path: Path, books: dict[str, list[str]]) -> None:
    """Writes arrays by name, and the code books among them."""
    np.savez(path, allow_pickle=False, **columns, **{name: np.array(book) for name, book in books.items()})
