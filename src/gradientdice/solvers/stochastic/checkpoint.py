"""Checkpoints: arrays in one safetensors file, never a pickle, put in place whole.

The last good checkpoint stays until the next one is complete, so that a kill or a full disk at any moment loses at most
the work since then.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from gradientdice.atomic import write_atomically
from gradientdice.errors import InputError


def save_checkpoint(path: Path, arrays: dict[str, np.ndarray], identity: dict[str, Any]) -> None:
    """Writes named arrays and what they belong to."""
    from safetensors.numpy import save

    content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, {"identity": _text(identity)})
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        write_atomically(path, lambda place: _write_all(place, content))
    except OSError as error:
        kept = "the last one is still there" if path.exists() else "there is none yet"
        raise InputError(
            f"The checkpoint {path} could not be written ({error}); {kept}. Free some space and run again."
        ) from error


def load_checkpoint(path: Path, identity: dict[str, Any]) -> dict[str, np.ndarray] | None:
    """The arrays of an earlier run of the same kind, or None if there is no file."""
    from safetensors import SafetensorError, safe_open

    if not path.exists():
        return None
    try:
        with safe_open(path, framework="np") as archive:
            found = (archive.metadata() or {}).get("identity")
            arrays = {name: archive.get_tensor(name) for name in archive.keys()}
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path} is not a whole checkpoint ({error}). Delete it to start anew.") from error
    if found != _text(identity):
        raise InputError(
            f"{path} belongs to a run with other settings or data. Choose another file, or delete it to start anew."
        )
    return arrays


def _text(identity: dict[str, Any]) -> str:
    return json.dumps(identity, sort_keys=True)


def _write_all(path: Path, content: bytes) -> None:
    """Also asks the system to bring it to the disk: a name must not come before its content."""
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
