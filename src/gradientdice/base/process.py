"""This process: the cores and BLAS threads that it may use, memory that it has freed, and JAX after a fork."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from gradientdice.base.errors import InputError


def usable_cores() -> int:
    """The number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Limit:
    """The process's limit on threads of BLAS: whoever finds none sets it, and takes it back in the same thread.

    Others within that time neither set nor restore anything: of two limits that overlap, the second would restore the
    first. Once it is taken back, those who go on have BLAS with all its threads, which is slower and not wrong.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._held = False
        self._libraries: Any = None

    def set(self) -> Any:
        """Set the limit and return what takes it back; None if somebody else has set it."""
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
        """Restore the number of threads from before the limit."""
        with self._lock:
            limit.restore_original_limits()
            self._held = False


_LIMIT = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit products by NumPy to one thread within this context, also those of other threads of the process.

    It is for as long as this library's own threads form products beside each other.
    """
    limit = _LIMIT.set()
    try:
        yield
    finally:
        if limit is not None:
            _LIMIT.take_back(limit)


def give_back_freed_memory() -> bool:
    """Give freed memory back to the system, between the stages of a long answer; true if there was any.

    glibc keeps what arrays of up to 32 MiB leave behind for the next ones of their kind. A stage that is over has no
    next ones, and what the following one needs comes on top: 0.3 GiB in an answer for 10⁵ rows.
    """
    trim = _trim()
    return trim is not None and bool(trim(0))


@functools.cache
def _trim() -> Callable[[int], int] | None:
    """Glibc's `malloc_trim`; None with another C library."""
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


_forked_after_jax = False


def require_own_jax() -> None:
    """Raise in a process that was forked after JAX had run: JAX would wait for ever for threads that are gone."""
    if _forked_after_jax:
        raise InputError(
            "This process was forked from one in which JAX had run, where JAX hangs. Start it by "
            'multiprocessing.get_context("spawn"), or run networks and stochastic solvers in one of the two alone.'
        )


def has_own_jax() -> bool:
    """True if JAX can be used in this process."""
    return not _forked_after_jax


def _after_fork() -> None:
    global _forked_after_jax
    bridge = sys.modules.get("jax._src.xla_bridge")
    # Where this JAX does not say whether it has run, having been imported counts.
    has_run = getattr(bridge, "backends_are_initialized", lambda: True) if bridge else (lambda: False)
    _forked_after_jax = _forked_after_jax or bool(has_run())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
