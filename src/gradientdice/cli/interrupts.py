"""Ctrl-C ends a command within two seconds, even where it is in a long computation outside of Python."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130  # what a shell reports for a process that SIGINT ended
# So long a command has to end by itself, and to remove the file that it was writing.
GRACE_SECONDS = 1.0


@contextmanager
def ends_soon_when_interrupted() -> Iterator[None]:
    """Ends the process if it was interrupted in this block and is still there after a while.

    Python runs its own handler only between two steps of Python code; a matrix may be factored for minutes in one.
    Files are put in place whole, so that an end at any moment damages none.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    watch = threading.Thread(target=_watch, args=(reading,), daemon=True)
    watch.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writing)  # the watch ends, unless it has seen an interrupt


def _watch(reading: int) -> None:
    while signals := os.read(reading, 1):
        if signals[0] == signal.SIGINT:
            time.sleep(GRACE_SECONDS)
            os._exit(INTERRUPTED)
    os.close(reading)
