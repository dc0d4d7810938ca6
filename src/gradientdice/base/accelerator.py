"""Devices for the sums and solves of closed forms: NumPy on the processor, or JAX in float64 on GPUs.

A GPU is used where JAX has one and the work is worth its start. `GRADIENTDICE_CLOSED_FORM` says it by hand: "cpu" for
NumPy alone, "device" for JAX's default devices whatever they are, "auto" (or nothing) for the rule. JAX's configuration
is never changed: float64 holds inside `double_precision` alone.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.base.process import has_own_jax, require_own_jax

T = TypeVar("T")

VARIABLE = "GRADIENTDICE_CLOSED_FORM"
CHOICES = ("auto", "cpu", "device")
# Floating-point operations from which a GPU pays off: a core does them in about five seconds, which is what importing
# JAX, starting a GPU and compiling a few small programs take.
LEAST_WORK = 2e11
# The same once a closed form has been computed there in this process: a call and a transfer take milliseconds.
LEAST_WORK_WARM = 2e9
# Of a device's memory, so much may be taken by sums and by the rows of a chunk; XLA works on copies of them.
MEMORY_SHARE = 0.3


@dataclass(frozen=True, eq=False)
class Devices:
    """Devices that share the rows of a log.

    Attributes:
        all: as JAX names them.
    """

    all: tuple[Any, ...]

    @property
    def count(self) -> int:
        """The number of devices."""
        return len(self.all)

    @property
    def memory(self) -> float:
        """The bytes that one of them may be given; without limit where it does not say."""
        stats = getattr(self.all[0], "memory_stats", lambda: None)()
        return MEMORY_SHARE * stats["bytes_limit"] if stats and "bytes_limit" in stats else float("inf")

    def put(self, array: np.ndarray, axis: int | None = None) -> Any:
        """An array on the devices: cut along an axis whose length they divide, else a copy on each.

        Needs `double_precision`.
        """
        import jax
        from jax.sharding import Mesh, NamedSharding, PartitionSpec

        if self.count == 1:
            return jax.device_put(array, self.all[0])
        spec = PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, "rows")
        return jax.device_put(array, NamedSharding(Mesh(np.array(self.all), ("rows",)), spec))


def may_have_devices() -> bool:
    """True if `closed_form_devices` could name any, which takes no time to say."""
    choice = _choice()
    return choice == "device" or (choice == "auto" and has_own_jax() and _has_plugin())


def closed_form_devices(work: float, size: float = 0.0) -> Devices | None:
    """Devices to compute a closed form on; None is NumPy.

    Args:
        work: floating-point operations.
        size: the bytes that must fit into the memory of each device.
    """
    choice, least = _choice(), LEAST_WORK_WARM if _found else LEAST_WORK
    if not may_have_devices() or (choice == "auto" and work < least):
        return None
    require_own_jax()
    found = _devices(choice)
    return found if found is not None and size <= found.memory else None


def in_thread(work: Callable[[], T]) -> Callable[[], T]:
    """Begin some work in another thread; the returned function waits for its result, or raises its error."""
    pool = ThreadPoolExecutor(1)
    begun = pool.submit(work)
    pool.shutdown(wait=False)
    return begun.result


@contextmanager
def double_precision() -> Iterator[None]:
    """Float64 in JAX, in this thread and inside the `with` alone."""
    import jax

    with jax.enable_x64(True):
        yield


# Those that a closed form has been computed on in this process, once there are any.
_found: list[Devices] = []


def _choice() -> str:
    choice = os.environ.get(VARIABLE) or "auto"
    if choice not in CHOICES:
        raise InputError(f"{VARIABLE} must be one of {', '.join(CHOICES)}, not {choice!r:.60}.")
    return choice


@lru_cache(maxsize=1)
def _has_plugin() -> bool:
    """True if JAX may know a GPU: asked of the installed packages, since importing and starting JAX takes a second.

    Builds for GPUs are plugins, which JAX finds in one of these two ways.
    """
    known = importlib.metadata.entry_points(group="jax_plugins")
    return bool(known) or importlib.util.find_spec("jax_plugins") is not None


def _devices(choice: str) -> Devices | None:
    import jax

    # What a TPU does in float64 is emulated, and slow.
    if choice == "auto" and jax.default_backend() not in ("gpu", "cuda", "rocm"):
        return None
    if not _found:
        _found.append(Devices(tuple(jax.local_devices())))
    return _found[0]
