"""Writing files so that an interruption or a full disk leaves the old file, or none, but never half of one.

Every file that the library writes is written here: under a name of its own in the same folder, brought to the disk,
and then renamed. Threads and processes that write to one path at a time leave one whole file.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gradientdice.base.errors import FileError, InputError


def write_atomically(path: Path, writer: Callable[[Path], Any]) -> Path:
    """Let `writer` write a temporary file of the same suffix beside `path`, then puts it in place.

    Raises:
        FileError: if that fails, in one sentence; what was there before is still there.
    """
    try:
        mode = replaceable(path)
        # Short, since a name may be nearly as long as allowed; hidden, so that no reader of a folder takes it.
        temporary = path.with_name(f".{secrets.token_hex(8)}{path.suffix}")
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            writer(temporary)
            if mode is not None:
                os.chmod(temporary, mode)
            _to_disk(temporary)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        _to_disk(path.parent)
    except InputError:
        raise
    except OSError as error:
        kept = " The file that was there is still there." if _exists(path) else ""
        reason = (error.strerror or str(error) or type(error).__name__).splitlines()[0]
        raise FileError(f"{_shown(path)} could not be written ({reason}).{kept}") from error
    return path


def make_folder(path: Path) -> Path:
    """Make a folder and those above it; an error in one sentence if that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise FileError(f"The folder {_shown(path)} could not be made ({reason}).") from error
    return path


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for this block, where the system has such; an error in one sentence if it has no room for any."""
    try:
        folder = tempfile.mkdtemp()
    except OSError as error:
        raise FileError(
            f"There is no place for temporary files ({error.strerror}). Set TMPDIR to a folder that may be written."
        ) from error
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def replaceable(path: Path) -> int | None:
    """The permissions of the regular file at `path`, None if there is nothing; an error for anything else."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise FileError(f"There is no folder {_shown(path.parent)} to write {path.name} into.") from None
        return None
    except ValueError as error:
        raise FileError(f"{str(path)!r:.120} is no name of a file ({error}).") from error
    except OSError as error:
        raise FileError(f"{_shown(path)} could not be written ({error.strerror}).") from error
    kinds = {stat.S_ISDIR: "a folder", stat.S_ISLNK: "a link", stat.S_ISREG: ""}
    kind = next((name for test, name in kinds.items() if test(found.st_mode)), "a device or a pipe")
    if kind:
        other = "Give the name of the file that it points to." if kind == "a link" else "Choose another name."
        raise FileError(f"{_shown(path)} is {kind}, and only a regular file is replaced. {other}")
    if not os.access(path, os.W_OK):
        # A rename would replace it all the same, where the folder may be written.
        raise FileError(f"{_shown(path)} may not be written: change its permissions, or choose another name.")
    return stat.S_IMODE(found.st_mode)


def _to_disk(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk: a name must not come before its content."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _exists(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _shown(path: Path) -> str:
    text = str(path)
    return text if len(text) <= 120 else f"{text[:100]}…"
