"""The line before a CSV file's header: the columns' types, code books, and a checksum of all that follows.

    #{"states": "int64", "rewards": "float64", "checksum": "crc32 0f3a99c1"}

Programs that skip lines with '#' read the rest as any other table. A file of another program has no such line, and text
without a checksum cannot be checked.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.log.fields import BOOKS

# No line of types is longer, with the code books in it.
LONGEST = 1 << 20
KINDS = {"bool", "float16", "float32", "float64"} | {
    f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64)
}
CHECKSUM, METHOD = "checksum", "crc32"
# As long as any checksum.
ROOM = f"{METHOD} {0:08x}"
CHUNK_BYTES = 1 << 20


def read(path: Path, stream: Any) -> dict[str, Any]:
    """The types and code books, none if the file has no such line; the stream then is at the header.

    Raises:
        InputError: if the line is none of types, or what follows has another checksum than it says.
    """
    line = stream.readline(LONGEST)
    if not line.startswith(b"#"):
        stream.seek(0)
        return {}
    try:
        types: Any = json.loads(line[1:])
    except ValueError:
        types = None
    expected = types.pop(CHECKSUM, None) if isinstance(types, dict) else None
    if not isinstance(types, dict) or not all(_is_type(name, kind) for name, kind in types.items()):
        raise InputError(
            f"{path}: its first line starts with '#' but is no line of types, such as "
            '#{"states": "int64"}. Delete the line, or the # if it is the header.'
        )
    if expected is not None and expected != _checksum(types, stream, len(line)):
        raise InputError(
            f"{path} is not what was written: the checksum in its first line differs, so the file is damaged. If you "
            "changed it on purpose, delete that line."
        )
    stream.seek(len(line))
    return types


def _is_type(name: str, kind: Any) -> bool:
    if name in BOOKS:
        return isinstance(kind, list) and all(isinstance(word, str) for word in kind)
    return isinstance(kind, str) and kind in KINDS


def write(columns: dict[str, np.ndarray], books: dict[str, list[str]], stream: BinaryIO) -> None:
    """Writes the line, with room for a checksum that `finish` fills in."""
    stream.write(_line(_types(columns, books), ROOM))


def finish(columns: dict[str, np.ndarray], books: dict[str, list[str]], stream: BinaryIO) -> None:
    """Puts in the checksum of what was written after the line."""
    types = _types(columns, books)
    checksum = _checksum(types, stream, len(_line(types, ROOM)))
    stream.seek(0)
    stream.write(_line(types, checksum))


def _types(columns: dict[str, np.ndarray], books: dict[str, list[str]]) -> dict[str, Any]:
    return {**{name: str(array.dtype) for name, array in columns.items()}, **books}


def _line(types: dict[str, Any], checksum: str) -> bytes:
    return b"#" + json.dumps({**types, CHECKSUM: checksum}).encode() + b"\n"


def _checksum(types: dict[str, Any], stream: Any, start: int) -> str:
    """Of the types and of all from `start`; carriage returns, which programs that copy text may add, do not count."""
    total = zlib.crc32(json.dumps(types).encode())
    stream.seek(start)
    while chunk := stream.read(CHUNK_BYTES):
        total = zlib.crc32(chunk.replace(b"\r", b""), total)
    return f"{METHOD} {total:08x}"
