"""A folder of results that knows which settings made it, resumes, and is never overwritten by accident."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradientdice.base.atomic import make_folder, write_atomically
from gradientdice.base.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MANIFEST = "manifest.json"
PARTS = "parts"
# Beside every part, under its name and this: what was written, to the bit.
CHECKSUM = ".sha256"


class ResultStore:
    """Results of one experiment with one set of settings.

    A part is a file that one step of the experiment wrote; a part that is there is not computed again. Files
    appear under their names only when they are whole, and a part has a checksum from the start.
    """

    def __init__(self, folder: Path, experiment: str, settings: dict[str, Any], *, force: bool = False) -> None:
        self.folder = folder
        identity = {"experiment": experiment, "settings": settings}
        text = json.dumps(identity, sort_keys=True)
        identity["fingerprint"] = hashlib.sha256(text.encode()).hexdigest()[:16]
        found = self._read_manifest(force)
        if found is None and folder.is_dir() and any(folder.iterdir()) and not force:
            raise InputError(
                f"{folder} has other files in it. Choose another folder, or give --force to write into it."
            )
        if found is not None and found.get("fingerprint") != identity["fingerprint"]:
            if not force:
                raise InputError(
                    f"{folder} holds the results of {found.get('experiment')!r} with other settings. "
                    "Choose another folder, or give --force to replace them."
                )
            self._start_anew()
        elif found is None and force:
            self._start_anew()
        make_folder(folder / PARTS)
        self._check_parts(force)
        self.write(
            folder / MANIFEST, lambda path: path.write_text(json.dumps(identity, indent=2, sort_keys=True) + "\n")
        )

    def part(self, name: str) -> Path:
        """Where the part of this name is, or will be."""
        return self.folder / PARTS / name

    def write(self, path: Path, writer: Callable[[Path], Any]) -> Path:
        """Writes a file of the results, whole or not at all."""
        if path.parent != self.folder / PARTS:
            return write_atomically(path, writer)

        def write_both(place: Path) -> None:
            writer(place)
            # Before the part has its name: a part without a checksum would not be checked.
            write_atomically(_checksum_of(path), lambda beside: beside.write_text(_digest(place)))

        return write_atomically(path, write_both)

    def write_figures(self, figures: dict[str, Figure]) -> dict[str, Path]:
        """Writes figures as PDF and PNG and closes them; name -> PNG."""
        import matplotlib.pyplot as plt

        paths = {}
        for name, figure in figures.items():
            for suffix in ("png", "pdf"):
                place = self.folder / f"{name}.{suffix}"
                self.write(place, lambda path, figure=figure: figure.savefig(path, dpi=150))
                # The second file has the first one's layout, whose search takes longer than the drawing.
                figure.set_layout_engine("none")
            paths[name] = self.folder / f"{name}.png"
            plt.close(figure)
        return paths

    def _start_anew(self) -> None:
        shutil.rmtree(self.folder / PARTS, ignore_errors=True)

    def _read_manifest(self, force: bool) -> dict[str, Any] | None:
        """What the folder holds; None if it does not say, or if it is damaged and may be replaced."""
        path = self.folder / MANIFEST
        if not path.is_file():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            found = None
        if isinstance(found, dict):
            return found
        if force:
            return None
        raise InputError(f"{path} is damaged. Choose another folder, or give --force to start anew.")

    def _check_parts(self, force: bool) -> None:
        """Parts were written whole; one that is not has been damaged since, and would be taken for a result."""
        # A process that is killed while it writes leaves a hidden file, which is nobody's part.
        named = (path for path in sorted((self.folder / PARTS).iterdir()) if not path.name.startswith("."))
        parts = [path for path in named if path.suffix != CHECKSUM]
        damaged = [path for path in parts if not _is_whole(path)]
        if damaged and not force:
            raise InputError(f"{damaged[0]} is damaged. Delete it, or give --force to start anew.")
        if damaged:
            self._start_anew()
            make_folder(self.folder / PARTS)


def _is_whole(path: Path) -> bool:
    """Whether a part is the one that was written.

    One of an earlier version has no checksum, and must be readable: JSON as a whole, Parquet by its first and last
    bytes and its description.
    """
    try:
        if _checksum_of(path).exists():
            return _checksum_of(path).read_text() == _digest(path)
        if path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            pq.read_metadata(path)
    except Exception:  # damaged bytes fail in any way
        return False
    return True


def _checksum_of(part: Path) -> Path:
    return part.with_name(part.name + CHECKSUM)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
