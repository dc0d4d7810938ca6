"""Writing files so that an interruption or a full disk leaves the old file, or none, but never half of one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_atomically(path: Path, writer: Callable[[Path], Any]) -> Path:
    """Has `writer` write a temporary file of the same suffix beside `path`, then puts it in place."""
    temporary = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        writer(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path
