"""A pass over a scanned log: sums of every part, reduced as a tree whose shape follows from the number of parts alone.

Here, or on the workers of a Dask cluster, the same parts are merged in the same order, so that the sums agree to the
last bit. With a folder for checkpoints, what is summed so far is written after every part (every few parts of a
cluster), and a pass that was interrupted goes on from there, on any number of workers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gradientdice.base.checkpoint import load_checkpoint, save_checkpoint
from gradientdice.base.errors import InputError
from gradientdice.base.process import usable_cores
from gradientdice.base.progress import working
from gradientdice.base.provenance import provenance
from gradientdice.log.scanning.ahead import read_ahead
from gradientdice.log.scanning.log import ScannedLog, fingerprint, require_unchanged
from gradientdice.log.scanning.parts import Batch, BatchRows

Sums = dict[str, np.ndarray]
# So many rows from all over the log, summed, tell one policy, function class or fit from another.
PROBE_ROWS = 10_000
# So many batches that were read wait at most: enough for a thread that was held up, and little memory.
WAITING = 3
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

    @property
    def is_heavy(self) -> bool:
        """Whether to sum a batch takes longer than to read it.

        One thread then reads fast enough, and takes two thirds of the processor time of several.
        """
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
        with working(f"reading the log: {work.name}", len(log.parts), self.progress) as advance, _unchanged(log):
            advance(done)
            for sums, level in _blocks(log, work, done):
                tree.push(sums, level)
                done += 1 << level
                if place is not None:
                    save_checkpoint(place, tree.arrays(done), identity)
                advance(1 << level)
        return tree.result()


@contextmanager
def _unchanged(log: ScannedLog) -> Iterator[None]:
    """An error if files change before or while they are read: it explains any other that comes of that."""
    require_unchanged(log)
    try:
        yield
    except InputError:
        require_unchanged(log)
        raise
    require_unchanged(log)


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
        from gradientdice.log.scanning.cluster import blocks

        yield from blocks(log, work, done)
        return
    parts = range(done, len(log.parts))
    # A second thread reads while this one sums, also beyond a part's end.
    with closing(read_ahead(_marked(log, work, parts), WAITING)) as reading:
        for part in parts:
            yield part_sums(log, work, part, _next_part(reading)), 0


def _marked(log: ScannedLog, work: Pass, parts: range) -> Iterator[Batch | None]:
    """The batches of some parts, and None at the end of each."""
    threads = usable_cores() > 1 and not work.is_heavy
    for part in parts:
        yield from log.batches(part, *work.fields, threads=threads)
        yield None


def _next_part(reading: Iterator[Batch | None]) -> Iterator[Batch]:
    """The batches up to the next end of a part."""
    for batch in reading:
        if batch is None:
            return
        yield batch


def part_sums(log: ScannedLog, work: Pass, part: int, found: Iterator[Batch], number: int | None = None) -> Sums:
    """The sums of one part; what is refused of a batch is said with its place in the log.

    Args:
        log: the log.
        work: what is summed.
        part: which part.
        found: its batches.
        number: the part's number where the log is a part of another one.
    """
    used: Batch | None = None

    def batches() -> Iterator[Batch]:
        nonlocal used
        for batch in found:
            used = batch
            yield batch
            used = None  # what goes wrong from here on is said by the reader

    try:
        return work.over(part if number is None else number, batches())
    except InputError as error:
        if used is None:
            raise
        raise InputError(f"{log.parts[part].name}, rows from {used.first} on: {error}") from error


def _identity(log: ScannedLog, work: Pass) -> dict[str, Any]:
    """What a checkpoint belongs to: the files, the batches, and what the pass makes of a sample of the rows."""
    versions = provenance()["versions"]
    return {
        "pass": work.name,
        "log": hashlib.sha256(repr(fingerprint(log)).encode()).hexdigest(),
        "columns": sorted(log.columns.items()),
        "batch_rows": log.batch_rows,
        "versions": {name: versions[name] for name in ("gradientdice", "numpy")},
        "policy, functions or settings": _probe(log, work),
    }


def _probe(log: ScannedLog, work: Pass) -> str:
    found = hashlib.sha256()
    for name, array in sorted(work.over(PROBE, iter([_some_rows(log)])).items()):
        # Rounded, since sums may differ in their last digits from one processor to another.
        rounded = array.astype(np.float32) if array.dtype.kind == "f" else array
        found.update(name.encode() + np.ascontiguousarray(rounded).tobytes())
    return found.hexdigest()


def _some_rows(log: ScannedLog) -> Batch:
    """Rows from all over the log, in its order."""
    sample = log.sample
    rows = np.unique(np.linspace(0, len(sample) - 1, PROBE_ROWS).astype(np.int64))
    fields = {name: getattr(sample, name) for name in log.columns if name != "initial_states"}
    starts = sample.initial_states
    return Batch(
        BatchRows(**{name: array[rows] for name, array in fields.items()}),
        None if starts is None else starts[:PROBE_ROWS],
        0,
    )
