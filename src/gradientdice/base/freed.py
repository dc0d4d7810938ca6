"""Freed memory is given back to the system between the stages of a long answer."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable


def give_back_freed_memory() -> bool:
    """Whether there was any to give back, and a way to do so.

    glibc keeps what arrays of up to 32 MiB leave behind for the next ones of their kind. A stage that is over has no
    next ones, and what the following one needs comes on top: 0.3 GiB in an answer for 10⁵ rows.
    """
    trim = _trim()
    return trim is not None and bool(trim(0))


@functools.cache
def _trim() -> Callable[[int], int] | None:
    """Glibc's function; None with another C library."""
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
