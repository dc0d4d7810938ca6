"""A folder of results that knows which settings made it, resumes, and is never overwritten by accident."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradientdice.atomic import write_atomically
from gradientdice.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MANIFEST = "manifest.json"
PARTS = "parts"


class ResultStore:
    """Results of one experiment with one set of settings.

    A part is a file that one step of the experiment wrote; a part that is there is not computed again. Files
    appear under their names only when they are whole.
    """

    def __init__(self, folder: Path, experiment: str, settings: dict[str, Any], *, force: bool = False) -> None:
        self.folder = folder
        identity = {"experiment": experiment, "settings": settings}
        text = json.dumps(identity, sort_keys=True)
        identity["fingerprint"] = hashlib.sha256(text.encode()).hexdigest()[:16]
        found = self._read_manifest()
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
            shutil.rmtree(folder / PARTS, ignore_errors=True)
        (folder / PARTS).mkdir(parents=True, exist_ok=True)
        self.write(
            folder / MANIFEST, lambda path: path.write_text(json.dumps(identity, indent=2, sort_keys=True) + "\n")
        )

    def part(self, name: str) -> Path:
        """Where the part of this name is, or will be."""
        return self.folder / PARTS / name

    def write(self, path: Path, writer: Callable[[Path], Any]) -> Path:
        """Writes a file of the results, whole or not at all."""
        return write_atomically(path, writer)

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

    def _read_manifest(self) -> dict[str, Any] | None:
        path = self.folder / MANIFEST
        if not path.is_file():
            return None
        try:
            return json.loads(path.read_text())
        except json.JSONDecodeError as error:
            raise InputError(f"{path} is not readable ({error}). Choose another folder.") from error
