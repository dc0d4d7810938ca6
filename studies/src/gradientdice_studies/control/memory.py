"""The most memory that the process held during some work."""

from __future__ import annotations

import gc
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# Linux: writing 5 to the first starts the peak in the second anew; Linux counts kibibytes.
CLEAR, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


@dataclass
class Memory:
    """The peak, once the work is done.

    Attributes:
        mebibytes: the largest resident size of the whole process, Python and libraries included.
    """

    mebibytes: float = 0.0


@contextmanager
def peak_memory() -> Iterator[Memory]:
    """Yields the peak of what is done inside; where it cannot start anew, the peak of the process so far."""
    gc.collect()
    try:
        CLEAR.write_text("5")
    except OSError:
        pass
    memory = Memory()
    try:
        yield memory
    finally:
        memory.mebibytes = _peak() / 1024


def _peak() -> float:
    try:
        lines = STATUS.read_text().splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
