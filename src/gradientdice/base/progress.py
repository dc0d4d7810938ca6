"""A progress bar for work that takes long: on a terminal, after two seconds, silence elsewhere.

Every long loop says what it does through `working`. A loop inside another one adds a line to the same display.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

# Shorter work shows nothing: a bar that flashes up tells less than the answer that follows it.
PATIENCE_SECONDS = 2.0

Item = TypeVar("Item")
# Called with an amount of work that is done and, if there is one, a note on how it goes.
Advance = Callable[..., None]


@contextmanager
def working(label: str, total: int, show: bool | None = None) -> Iterator[Advance]:
    """Show on a terminal the work that is being done and how far it is.

    Args:
        label: what is being done, in a few words.
        total: how much there is to do.
        show: None shows a bar once the work has taken two seconds, True from the start, False never. Where standard
            error is no terminal, and in the worker processes of a pool, there is none.

    Yields:
        `advance(amount, note="")`, which may be called from any thread.
    """
    if show is False or not _has_reader():
        yield lambda amount, note="": None
        return
    with _DISPLAY.line(label, total, at_once=bool(show)) as advance:
        yield advance


def tracked(label: str, items: Sequence[Item], show: bool | None = None) -> Iterator[Item]:
    """The items of a loop whose passes `working` counts."""
    with working(label, len(items), show) as advance:
        for item in items:
            yield item
            advance(1)


def _has_reader() -> bool:
    """True if somebody looks on: a terminal, and no process of a pool, whose parent shows the progress of all."""
    return sys.stderr is not None and sys.stderr.isatty() and multiprocessing.parent_process() is None


class _Display:
    """The lines of all loops that are under way; shown while there is any, from a moment after the first began."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._progress: Progress | None = None
        self._timer: threading.Timer | None = None
        self._depth = 0

    @contextmanager
    def line(self, label: str, total: int, *, at_once: bool) -> Iterator[Advance]:
        """A line of its own for one loop, below that of the loop around it."""
        with self._lock:
            if self._progress is None:
                self._progress = progress = _bar()
                self._timer = threading.Timer(PATIENCE_SECONDS, self._appear, [progress])
                self._timer.daemon = True
                self._timer.start()
            progress = self._progress
            task = progress.add_task("  " * self._depth + label, total=total, note="")
            self._depth += 1
            if at_once:
                progress.start()

        def advance(amount: int, note: str = "") -> None:
            progress.update(task, advance=amount, note=note)

        try:
            yield advance
        finally:
            with self._lock:
                self._depth -= 1
                if self._depth == 0:
                    self._vanish()
                else:
                    progress.remove_task(task)

    def _appear(self, progress: Progress) -> None:
        with self._lock:
            if progress is self._progress:
                progress.start()

    def _vanish(self) -> None:
        assert self._timer is not None and self._progress is not None
        self._timer.cancel()
        self._progress.stop()
        self._timer = self._progress = None


_DISPLAY = _Display()


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        TextColumn("{task.fields[note]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    # What took long is gone from the screen once it is done: the answer says the rest.
    return Progress(*columns, console=Console(stderr=True), transient=True)
