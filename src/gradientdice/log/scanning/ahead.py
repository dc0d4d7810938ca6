"""Reading ahead: the next items of an iterator are made in a thread while those before them are used."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, TypeVar

T = TypeVar("T")

# One item in use, one ready and one in the making.
AHEAD = 1
# Seconds after which a thread that waits for room looks whether anybody still reads.
PATIENCE = 0.1


def read_ahead(items: Iterator[T], ahead: int = AHEAD) -> Generator[T, None, None]:
    """The items in their order; an error of theirs is raised where its item would have come.

    Args:
        items: they are asked for in another thread, which ends with them or when this iterator is closed.
        ahead: how many wait to be used at most.
    """
    ready: Queue[tuple[bool, Any]] = Queue(ahead)
    closed = Event()
    thread = Thread(target=_fill, args=(items, ready, closed), name="reading ahead", daemon=True)
    thread.start()
    try:
        while True:
            last, item = ready.get()
            if not last:
                yield item
            elif item is None:
                return
            else:
                raise item
    finally:
        closed.set()
        thread.join()


def _fill(items: Iterator[Any], ready: Queue[tuple[bool, Any]], closed: Event) -> None:
    try:
        for item in items:
            if not _put(ready, (False, item), closed):
                return
    except BaseException as error:  # whatever it is, it belongs to whoever reads
        _put(ready, (True, error), closed)
        return
    _put(ready, (True, None), closed)


def _put(ready: Queue[tuple[bool, Any]], item: tuple[bool, Any], closed: Event) -> bool:
    """Whether there was room for it before nobody read any more."""
    while not closed.is_set():
        try:
            ready.put(item, timeout=PATIENCE)
            return True
        except Full:
            continue
    return False
