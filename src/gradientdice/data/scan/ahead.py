"""Batches that a second thread reads and checks while this one sums those before them, also beyond a part."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import NamedTuple

from gradientdice.data.scan.log import ScannedLog
from gradientdice.data.scan.parts import Batch

# So many batches wait at most: enough for a thread that was held up, and little memory.
WAITING = 3
# How often a thread that waits for room looks whether it is still wanted, in seconds.
PATIENCE = 0.1


class _Read(NamedTuple):
    """What was read: a batch of a part, the end of a part if there is none, or what went wrong."""

    part: int
    batch: Batch | None = None
    error: BaseException | None = None


class ReadAhead:
    """The batches of some parts of a log, in their order, part by part.

    Args:
        log: the log.
        fields: those to be read beside the ones that every log has.
        parts: the numbers of the parts.
    """

    def __init__(self, log: ScannedLog, fields: tuple[str, ...], parts: range) -> None:
        self._log, self._fields, self._parts = log, fields, parts
        self._ready: queue.Queue[_Read] = queue.Queue(WAITING)
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._read, name="gradientdice-read-ahead", daemon=True)

    def __enter__(self) -> ReadAhead:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._left.set()
        self._thread.join()

    def batches(self, part: int, *fields: str) -> Iterator[Batch]:
        """The batches of this part, as `ScannedLog.batches` has them; parts must be asked for in their order."""
        assert fields == self._fields
        while True:
            found = self._ready.get()
            if found.error is not None:
                raise found.error
            if found.part < part:
                continue  # of a part whose batches were not all used
            if found.batch is None:
                return
            yield found.batch

    def _read(self) -> None:
        for part in self._parts:
            try:
                for batch in self._log.batches(part, *self._fields):
                    if not self._put(_Read(part, batch)):
                        return
            except BaseException as error:  # whatever it is, it is raised where the batches are used
                self._put(_Read(part, error=error))
                return
            if not self._put(_Read(part)):
                return

    def _put(self, found: _Read) -> bool:
        """Waits for room; whether anybody still wants it."""
        while not self._left.is_set():
            try:
                self._ready.put(found, timeout=PATIENCE)
            except queue.Full:
                continue
            return True
        return False
