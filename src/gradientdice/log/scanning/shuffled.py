"""Rows of a log in an order for training: shuffled by row groups, each row once in an epoch.

An epoch takes the row groups in an order drawn from seed and epoch. Some at a time are read into a pool, whose rows are
shuffled. What comes at a position of this endless stream follows from seed and position alone, so that a run goes on in
the middle of an epoch without reading what it has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from gradientdice.log.fields import REQUIRED
from gradientdice.log.scanning.log import ScannedLog
from gradientdice.log.scanning.parts import ArrowPart, Part, batches
from gradientdice.log.transitions import Transitions

# Rows of a pool: some megabytes, and many minibatches.
POOL_ROWS = 1 << 18
# The fields that training reads beside those that every log has.
TRAINED = ("terminated",)

Columns = dict[str, np.ndarray]


class Unit(Protocol):
    """Rows that are read together."""

    @property
    def rows(self) -> int:
        """How many."""
        ...

    def read(self) -> Columns:
        """Their fields."""
        ...


@dataclass(frozen=True, eq=False)
class ScannedUnit:
    """A row group of a file, or another part of a scanned log.

    Attributes:
        part: the part.
        columns: field -> the name of its column.
        rows: how many it has.
    """

    part: Part
    columns: dict[str, str]
    rows: int

    def read(self) -> Columns:
        """Their fields."""
        read = [batch.data for batch in batches(self.part, self.columns, self.rows, threads=True)]
        return _joined([{name: getattr(data, name) for name in self.columns} for data in read])


@dataclass(frozen=True, eq=False)
class MemoryUnit:
    """Some rows of a log in memory.

    Attributes:
        data: the log.
        place: which rows.
    """

    data: Transitions
    place: slice

    @property
    def rows(self) -> int:
        """How many."""
        return len(self.data.rewards[self.place])

    def read(self) -> Columns:
        """Their fields."""
        fields = {name: getattr(self.data, name) for name in (*REQUIRED, *TRAINED)}
        return {name: array[self.place] for name, array in fields.items() if array is not None}


@dataclass(frozen=True, eq=False)
class ShuffledRows:
    """An endless stream of a log's rows.

    Attributes:
        units: what is read together.
        seed: of the order.
        pool_rows: rows are shuffled among at least so many, if the log has them.
    """

    units: Sequence[Unit]
    seed: int = 0
    pool_rows: int = POOL_ROWS

    @classmethod
    def of_scan(cls, log: ScannedLog, seed: int = 0, pool_rows: int = POOL_ROWS) -> ShuffledRows:
        """The rows of a scanned log, by its row groups."""
        columns = {name: column for name, column in log.columns.items() if name in (*REQUIRED, *TRAINED)}
        pieces = [piece for part in log.parts for piece in _pieces(part)]
        units = [ScannedUnit(piece, columns, _count(piece, columns)) for piece in pieces]
        return cls([unit for unit in units if unit.rows], seed, pool_rows)

    @classmethod
    def of_memory(
        cls, data: Transitions, sizes: Sequence[int], seed: int = 0, pool_rows: int = POOL_ROWS
    ) -> ShuffledRows:
        """The rows of a log in memory, by stretches of these sizes."""
        ends = np.cumsum(sizes)
        places = [slice(int(end) - size, int(end)) for size, end in zip(sizes, ends, strict=True)]
        return cls([MemoryUnit(data, place) for place in places], seed, pool_rows)

    @property
    def epoch_rows(self) -> int:
        """The rows of the log."""
        return sum(unit.rows for unit in self.units)

    def pieces(self, start: int, sizes: Iterable[int]) -> Iterator[Transitions]:
        """Stretches of the stream that follow each other, from a position on: as many and as long as asked for."""
        pools, rest = self._pools_from(start), None
        for size in sizes:
            parts: list[Columns] = [] if rest is None else [rest]
            have = sum(len(part["rewards"]) for part in parts)
            while have < size:
                parts.append(next(pools))
                have += len(parts[-1]["rewards"])
            whole = _joined(parts) if parts else {}
            yield Transitions(**{name: array[:size] for name, array in whole.items()})
            rest = {name: array[size:] for name, array in whole.items()} or None

    def _pools_from(self, start: int) -> Iterator[Columns]:
        """The shuffled pools of all epochs, the first of them from the row on at which the position is."""
        epoch, skipped = divmod(start, self.epoch_rows)
        while True:
            for number, pool in enumerate(self._pools(epoch)):
                rows = sum(unit.rows for unit in pool)
                if skipped >= rows:
                    skipped -= rows
                    continue
                whole = _joined([unit.read() for unit in pool])
                order = np.random.default_rng([self.seed, epoch, number]).permutation(rows)[skipped:]
                yield {name: array[order] for name, array in whole.items()}
                skipped = 0
            epoch += 1

    def _pools(self, epoch: int) -> list[list[Unit]]:
        """The units of an epoch in its order, in groups that have enough rows to shuffle."""
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self.units))
        pools: list[list[Unit]] = [[]]
        have = 0
        for number in order:
            if have >= self.pool_rows:
                pools.append([])
                have = 0
            pools[-1].append(self.units[number])
            have += self.units[number].rows
        return pools


def _pieces(part: Part) -> list[Part]:
    """The row groups of a part, where it has any; else the part itself."""
    if not isinstance(part, ArrowPart) or not hasattr(part.fragment, "split_by_row_group"):
        return [part]
    fragments = part.fragment.split_by_row_group()
    # Checksums are those of all rows together.
    return [replace(part, fragment=own, name=f"{part.name} ({k})", sums={}) for k, own in enumerate(fragments)]


def _count(part: Part, columns: dict[str, str]) -> int:
    """The rows of a part; of a row group without a filter the file's footer tells them."""
    if isinstance(part, ArrowPart):
        groups = getattr(part.fragment, "row_groups", None)
        if groups is None or part.filter is not None:
            return part.fragment.count_rows(filter=part.filter)
        # Arrow would count the rows of the whole file.
        return sum(group.num_rows for group in groups)
    return sum(table.num_rows for table in part.tables([columns["rewards"]], POOL_ROWS, threads=True))


def _joined(parts: Sequence[Columns]) -> Columns:
    """Some rows after each other."""
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
