"""Which log is this? A digest of all of its columns, so that answers can be told apart by the log they come from."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from gradientdice.log.fields import ARRAYS

if TYPE_CHECKING:
    from gradientdice.log.transitions import Transitions


def log_digest(data: Transitions) -> str:
    """Equal for logs with the same columns, types, rows and order of rows, whichever objects hold them."""
    found = hashlib.sha256()
    for name in ARRAYS:
        array = getattr(data, name)
        if array is not None:
            found.update(f"{name} {array.dtype.str} {array.shape}".encode())
            found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()
