"""Passes on the workers of a Dask cluster.

Blocks of parts are summed and merged on the workers as a tree, and the blocks here, in the order that a single process
has. Dask moves the work of workers that are lost to others.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

from gradientdice.log.scanning.allocator import keep_freed_memory
from gradientdice.log.scanning.log import ScannedLog
from gradientdice.log.scanning.parts import FramePart
from gradientdice.log.scanning.passes import Pass, Sums, part_sums

# Blocks of two to this power parts are merged on the workers; each comes here as one.
BLOCK_LEVEL = 3
# A part whose worker is lost so many times in a row has other reasons than bad luck.
RETRIES = 5


def blocks(log: ScannedLog, work: Pass, done: int) -> Iterator[tuple[Sums, int]]:
    """The sums of the parts from `done` on, in blocks as large as their place allows, with their levels."""
    client = log.client
    # What every task needs is a task of its own: it goes once to each worker, and unlike scattered data it is made
    # again where all workers that had it are lost.
    tasks = _Tasks(client, work.name, uuid.uuid4().hex)
    shared = tasks.submit("shared", _shared, replace(log, parts=(), client=None), work)
    waiting = []
    while done < len(log.parts):
        level = _level(done, len(log.parts))
        waiting.append((_tree(tasks, log, shared, done, level), level))
        done += 1 << level
    for number, (future, level) in enumerate(waiting):
        yield client.gather(future), level
        waiting[number] = (None, level)  # its memory on the workers is free from here on


def _level(first: int, count: int) -> int:
    """How large a block may begin at this part: aligned to its own size, and whole."""
    level = 0
    while level < BLOCK_LEVEL and first % (2 << level) == 0 and first + (2 << level) <= count:
        level += 1
    return level


class _Tasks:
    """Tasks with names that Dask's dashboard shows and groups: what is done, in which pass."""

    def __init__(self, client: Any, name: str, run: str) -> None:
        self.client, self._name, self._run = client, name, run
        self._numbers = count()

    def submit(self, kind: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """A task of its own: what it gives is never that of another with the same arguments."""
        key = f"{self._name}-{kind}-{next(self._numbers)}-{self._run}"
        return self.client.submit(function, *arguments, key=key, retries=RETRIES)


def _tree(tasks: _Tasks, log: ScannedLog, shared: Any, first: int, level: int) -> Any:
    """The sums of two to the power `level` parts from this one on."""
    if level == 0:
        part = log.parts[first]
        # A partition of a frame is Dask's own, and computed by it.
        content = tasks.client.compute(part.partition) if isinstance(part, FramePart) else part
        return tasks.submit("part", _part, shared, content, first, part.name)
    half = 1 << (level - 1)
    left, right = _tree(tasks, log, shared, first, level - 1), _tree(tasks, log, shared, first + half, level - 1)
    return tasks.submit("merge", _merge, shared, left, right)


def _shared(log: ScannedLog, work: Pass) -> tuple[ScannedLog, Pass]:
    return log, work


def _part(shared: tuple[ScannedLog, Pass], content: Any, number: int, name: str) -> Sums:
    log, work = shared
    keep_freed_memory()
    part = content if hasattr(content, "tables") else FramePart(content, name)
    alone = replace(log, parts=(part,), left_out={0: log.left_out.get(number, 0)})
    # Other workers have the other cores.
    return part_sums(alone, work, 0, alone.batches(0, *work.fields, threads=False), number)


def _merge(shared: tuple[ScannedLog, Pass], left: Sums, right: Sums) -> Sums:
    return shared[1].merged(left, right)
