"""BLAS with one thread, for as long as this library's own threads form products beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any


class _Limit:
    """The limit is one of the whole process: whoever finds none sets it, and takes it back in the same thread.

    Others within that time neither set nor restore anything: of two limits that overlap, the second would restore the
    first. Once it is taken back, those who go on have BLAS with all its threads, which is slower and not wrong.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._held = False
        self._libraries: Any = None

    def set(self) -> Any:
        """What takes the limit back; None if somebody else has set it."""
        with self._lock:
            if self._held:
                return None
            if self._libraries is None:
                # Imported where it is needed, and asked once: to look through all loaded libraries takes milliseconds.
                from threadpoolctl import ThreadpoolController

                self._libraries = ThreadpoolController()
            self._held = True
            return self._libraries.limit(limits=1, user_api="blas")

    def take_back(self, limit: Any) -> None:
        """Restores what was before."""
        with self._lock:
            limit.restore_original_limits()
            self._held = False


_LIMIT = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Products by NumPy take one thread within this context, also those of other threads of the process."""
    limit = _LIMIT.set()
    try:
        yield
    finally:
        if limit is not None:
            _LIMIT.take_back(limit)
