"""Sums by episode, whose rows may lie in several batches, files and workers.

A run is a stretch of rows of one episode. Of every stretch of the log its first and its last run stay open, since they
may go on beyond its borders; those between are closed: an episode whose numbers never come again is complete, and adds
what it has to the sums. So neither 10⁸ episodes nor any border cost memory. Runs are episodes if their numbers only
ever increase. If they do not, all runs are written to disk, and put together there (`spill.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float, Int

from gradientdice.log.scanning.parts import Batch
from gradientdice.log.scanning.passes import PROBE, Sums
from gradientdice.log.scanning.spill import Spill

RUN_KEYS = ("run_ids", "runs")


class OutOfOrder(Exception):
    """An episode's number is below the one before it: it may be one that was there already."""


class Counter(Protocol):
    """Sums over the rows of one part, as they come."""

    def add(self, batch: Batch) -> None:
        """Adds the rows of a batch."""
        ...

    def sums(self) -> Sums:
        """What they come to."""
        ...


@dataclass(eq=False)
class EpisodePass(ABC):
    """A pass that sums over rows and over episodes; without episodes each row is one.

    Attributes:
        spill: where runs are written if the numbers of episodes come in no order; None takes them for increasing.
    """

    spill: Spill | None = None

    @property
    @abstractmethod
    def kind(self) -> str:
        """What is summed, in a word."""

    @property
    def name(self) -> str:
        """The same, for progress and for the names of files."""
        return self.kind if self.spill is None else f"{self.kind}-by-disk"

    @property
    @abstractmethod
    def fields(self) -> tuple[str, ...]:
        """The fields that it reads beside those that every log has."""

    @property
    def is_heavy(self) -> bool:
        """Whether to sum a batch takes longer than to read it."""
        return False

    @abstractmethod
    def counter(self) -> Counter:
        """What sums over the rows of one part, whatever their episodes."""

    @abstractmethod
    def run_values(self, batch: Batch, first: Int[np.ndarray, " m"]) -> Float[np.ndarray, "m k"]:
        """What is known of each run of a batch; `first` are their first rows."""

    @abstractmethod
    def joined(self, group: Int[np.ndarray, " m"], runs: Float[np.ndarray, "m k"]) -> Float[np.ndarray, "g k"]:
        """Runs that are pieces of one episode as one; `group` numbers the episodes of neighbouring pieces from 0."""

    @abstractmethod
    def closed(self, runs: Float[np.ndarray, "m k"]) -> Sums:
        """What whole episodes add."""

    def single_rows(self, batch: Batch) -> Sums:
        """What rows without episodes add: each is an episode of its own."""
        return self.closed(self.run_values(batch, np.arange(len(batch.data))))

    @property
    def reducers(self) -> dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]:
        """How sums that do not just add up are put together."""
        return {}

    def over(self, part: int, batches: Iterator[Batch]) -> Sums:
        """The sums of one part."""
        total: Sums = {}
        written, counter = [], self.counter()
        for batch in batches:
            counter.add(batch)
            episodes = batch.data.episodes
            if episodes is None:
                total = self.together(total, self.single_rows(batch))
                continue
            first = np.flatnonzero(np.append(True, episodes[1:] != episodes[:-1]))
            runs = {"run_ids": episodes[first].astype(np.int64), "runs": self.run_values(batch, first)}
            if self.spill is None:
                total = self.merged(total, runs)
            else:
                written.append((runs["run_ids"], runs["runs"]))
        if self.spill is not None and part != PROBE:
            empty = (np.zeros(0, dtype=np.int64), np.zeros((0, 1)))
            runs = (np.concatenate(column) for column in zip(*written, strict=True)) if written else empty
            self.spill.write(part, *runs)
        return {**self.together(total, counter.sums()), **_runs(total)}

    def merged(self, left: Sums, right: Sums) -> Sums:
        """The sums of two stretches that follow each other."""
        total = self.together(left, right)
        sides = [side for side in (left, right) if "runs" in side]
        if not sides:
            return total
        ids, runs = (np.concatenate([side[name] for side in sides]) for name in RUN_KEYS)
        if (ids[1:] < ids[:-1]).any():
            raise OutOfOrder
        change = ids[1:] != ids[:-1]
        if not change.all():
            group = np.append(0, np.cumsum(change))
            runs, ids = self.joined(group, runs), ids[np.append(True, change)]
        if len(ids) > 2:
            total = self.together(total, self.closed(runs[1:-1]))
            ids, runs = ids[[0, -1]], runs[[0, -1]]
        return {**total, "run_ids": ids, "runs": runs}

    def finished(self, sums: Sums) -> Sums:
        """The sums of the whole log: what was open at its ends is closed."""
        total = {name: array for name, array in sums.items() if name not in RUN_KEYS}
        if "runs" in sums:
            return self.together(total, self.closed(sums["runs"]))
        if self.spill is not None:
            for ids, runs in self.spill.buckets():
                group = np.append(0, np.cumsum(ids[1:] != ids[:-1]))
                total = self.together(total, self.closed(self.joined(group, runs)))
        return total

    def together(self, left: Sums, right: Sums) -> Sums:
        """Sums of one kind in one; open runs are left out."""
        reducers = self.reducers
        total = {name: array for name, array in left.items() if name not in RUN_KEYS}
        for name, array in right.items():
            if name in RUN_KEYS:
                continue
            if name not in total:
                total[name] = array
            else:
                total[name] = reducers[name](total[name], array) if name in reducers else total[name] + array
        return total


def _runs(sums: Sums) -> Sums:
    return {name: sums[name] for name in RUN_KEYS if name in sums}


def sums_by_run(values: Float[np.ndarray, "n k"], first: Int[np.ndarray, " m"]) -> Float[np.ndarray, "m k"]:
    """The sum of each run's rows."""
    return np.add.reduceat(values, first, axis=0)
