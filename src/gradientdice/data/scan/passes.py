"""A pass over a scanned log: sums of every part, reduced as a tree whose shape follows from the number of parts alone.

Here, or on the workers of a Dask cluster, the same parts are merged in the same order, so that the sums agree to the
last bit. With a folder for checkpoints, what is summed so far is written after every part (every few parts of a
cluster), and a pass that was interrupted goes on from there, on any number of workers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gradientdice.checkpoint import load_checkpoint, save_checkpoint
from gradientdice.data.scan.ahead import ReadAhead
from gradientdice.data.scan.log import ScannedLog, fingerprint
from gradientdice.data.scan.parts import Batch
from gradientdice.progress import working

Sums = dict[str, np.ndarray]
# The first rows of a log, summed, tell one policy, function class or fit from another.
PROBE_ROWS = 64
# The number of a part that is none.
PROBE = -1


class Pass(Protocol):
    """What is summed."""

    @property
    def name(self) -> str:
        """In a word, for progress and for the names of files."""
        ...

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that it reads beside those that every log has."""
        ...

    def over(self, part: int, batches: Iterator[Batch]) -> Sums:
        """The sums of one part."""
        ...

    def merged(self, left: Sums, right: Sums) -> Sums:
        """The sums of two stretches of the log that follow each other."""
        ...


@dataclass(frozen=True)
class Run:
    """How passes are run.

    Attributes:
        checkpoint: a folder to which they write as they go; None writes nothing.
        progress: whether they show a progress bar, see `working`.
    """

    checkpoint: Path | None = None
    progress: bool | None = None

    def sums(self, log: ScannedLog, work: Pass) -> Sums:
        """The sums of all parts of a log."""
        tree = _Tree(work)
        place = None if self.checkpoint is None else self.checkpoint / f"{work.name}.safetensors"
        identity = {} if place is None else _identity(log, work)
        done = 0 if place is None else tree.restore(load_checkpoint(place, identity))
        with working(f"reading the log: {work.name}", len(log.parts), self.progress) as advance:
            advance(done)
            for sums, level in _blocks(log, work, done):
                tree.push(sums, level)
                done += 1 << level
                if place is not None:
                    save_checkpoint(place, tree.arrays(done), identity)
                advance(1 << level)
        return tree.result()


class _Tree:
    """Sums of blocks of 1, 2, 4, … parts, merged as soon as two neighbours are of one size."""

    def __init__(self, work: Pass) -> None:
        self._work = work
        self._blocks: list[tuple[int, Sums]] = []

    def push(self, sums: Sums, level: int) -> None:
        """Adds the next block, of two to the power `level` parts."""
        self._blocks.append((level, sums))
        while len(self._blocks) > 1 and self._blocks[-1][0] == self._blocks[-2][0]:
            (level, left), (_, right) = self._blocks[-2:]
            self._blocks[-2:] = [(level + 1, self._work.merged(left, right))]

    def result(self) -> Sums:
        """All blocks in one, the small ones at the end first."""
        total = self._blocks[-1][1]
        for _, left in reversed(self._blocks[:-1]):
            total = self._work.merged(left, total)
        return total

    def arrays(self, done: int) -> Sums:
        """What there is so far, for a checkpoint."""
        arrays = {f"{k}.{name}": array for k, (_, sums) in enumerate(self._blocks) for name, array in sums.items()}
        return {**arrays, "levels": np.array([level for level, _ in self._blocks]), "done": np.array([done])}

    def restore(self, arrays: Sums | None) -> int:
        """Takes up a checkpoint; how many parts it has."""
        if arrays is None:
            return 0
        for k, level in enumerate(arrays["levels"]):
            prefix = f"{k}."
            sums = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            self._blocks.append((int(level), sums))
        return int(arrays["done"][0])


def _blocks(log: ScannedLog, work: Pass, done: int) -> Iterator[tuple[Sums, int]]:
    """The sums of the parts from `done` on, each with the level of its block."""
    if log.client is not None:
        from gradientdice.data.scan.cluster import blocks

        yield from blocks(log, work, done)
        return
    parts = range(done, len(log.parts))
    with ReadAhead(log, work.fields, parts) as reading:
        for part in parts:
            yield part_sums(reading, work, part), 0


def part_sums(log: ScannedLog | ReadAhead, work: Pass, part: int) -> Sums:
    """The sums of one part."""
    return work.over(part, log.batches(part, *work.fields))


def _identity(log: ScannedLog, work: Pass) -> dict[str, Any]:
    """What a checkpoint belongs to: the files, the batches, and what the pass makes of the first rows."""
    return {
        "pass": work.name,
        "log": hashlib.sha256(repr(fingerprint(log)).encode()).hexdigest(),
        "columns": sorted(log.columns.items()),
        "batch_rows": log.batch_rows,
        "policy, functions or settings": _probe(log, work),
    }


def _probe(log: ScannedLog, work: Pass) -> str:
    few = ScannedLog(log.parts, log.columns, PROBE_ROWS)
    batch = next(iter(few.batches(0, *work.fields)))
    found = hashlib.sha256()
    for name, array in sorted(work.over(PROBE, iter([batch])).items()):
        # Rounded, since sums may differ in their last digits from one processor to another.
        rounded = array.astype(np.float32) if array.dtype.kind == "f" else array
        found.update(name.encode() + np.ascontiguousarray(rounded).tobytes())
    return found.hexdigest()
