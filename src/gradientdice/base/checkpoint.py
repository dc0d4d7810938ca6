"""Checkpoints: arrays in one safetensors file, never a pickle, put in place whole.

The last good checkpoint stays until the next one is complete, so that a kill or a full disk at any moment loses at most
the work since then. A file says what it belongs to and has a checksum: one that differs in a single bit from what was
written is refused.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from gradientdice.base.atomic import make_folder, write_atomically
from gradientdice.base.errors import FileError, InputError

Arrays = dict[str, np.ndarray]


def save_checkpoint(path: Path, arrays: Arrays, identity: dict[str, Any]) -> None:
    """Write named arrays and the identity of the run that they belong to."""
    content = _content(arrays, _text(identity))
    make_folder(path.parent)
    write_atomically(path, lambda place: place.write_bytes(content))


def load_checkpoint(path: Path, identity: dict[str, Any]) -> Arrays | None:
    """The arrays of an earlier run of the same kind, or None if there is no file."""
    from safetensors.numpy import load

    try:
        if not path.exists():
            return None
    except (OSError, ValueError) as error:  # a name that is too long, a folder that may not be looked into
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise FileError(f"The checkpoint {str(path)[:100]} cannot be read ({reason}).") from error
    try:
        # Read once: another process may put a new file in its place at any moment.
        written = path.read_bytes()
        arrays, belongs_to = load(written), _metadata(written)["belongs_to"]
        # The same arrays give the same bytes, of which the checksum is a part.
        damaged = _content(arrays, belongs_to) != written
    except Exception as error:  # damaged bytes fail in any way
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{path} is not a whole checkpoint ({reason:.160}). Delete it to start anew.") from error
    if damaged:
        raise InputError(f"{path} is not a whole checkpoint (its checksum differs). Delete it to start anew.")
    if belongs_to != _text(identity):
        raise InputError(
            f"{path} belongs to a run with other settings or data{_difference(belongs_to, identity)}. Choose another "
            "folder, or delete it to start anew."
        )
    return arrays


def _metadata(written: bytes) -> dict[str, str]:
    """The identity that `_content` put beside the arrays: a file begins with a header in JSON, after its length."""
    length = int.from_bytes(written[:8], "little")
    return json.loads(json.loads(written[8 : 8 + length])["__metadata__"]["identity"])


def _content(arrays: Arrays, belongs_to: str) -> bytes:
    from safetensors.numpy import save

    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    checksum = hashlib.sha256(belongs_to.encode())
    for name in sorted(plain):
        checksum.update(f"{name} {plain[name].dtype} {plain[name].shape}".encode())
        checksum.update(plain[name].tobytes())
    # One entry: the order of several would differ from run to run.
    metadata = json.dumps({"belongs_to": belongs_to, "checksum": checksum.hexdigest()})
    return save(plain, {"identity": metadata})


def _difference(found: str, identity: dict[str, Any]) -> str:
    """The parts of two identities that differ, where they have names."""
    try:
        before = json.loads(found)
        names = [name for name, value in identity.items() if json.loads(json.dumps(value)) != before.get(name)]
    except (ValueError, AttributeError):
        return ""
    return f" ({', '.join(names)})" if names else ""


def _text(identity: dict[str, Any]) -> str:
    return json.dumps(identity, sort_keys=True)
