"""The memory of a Dask worker.

`distributed` starts its workers with `MALLOC_TRIM_THRESHOLD_=65536`. glibc then gives every large array back to the
system when it is freed, and gets the next one page by page: a pass, which makes arrays of the same sizes over and over,
spends more than half of its time on that.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys

VARIABLE = "MALLOC_TRIM_THRESHOLD_"
# What `distributed` sets; another value is the user's own wish.
OF_DISTRIBUTED = "65536"
# glibc's numbers of these settings, and its own largest value for arrays that come from kept memory.
TRIM, MAPPED = -1, -3
LARGEST = 32 * 1024**2


@functools.cache
def keep_freed_memory() -> bool:
    """Lets this process keep up to 64 MiB that it has freed, if `distributed` told it not to; whether it does."""
    if sys.platform != "linux" or os.environ.get(VARIABLE) != OF_DISTRIBUTED:
        return False
    try:
        set_option = ctypes.CDLL(None).mallopt
    except AttributeError:  # another C library than glibc
        return False
    return bool(set_option(MAPPED, LARGEST)) and bool(set_option(TRIM, 2 * LARGEST))
