"""Runs of episodes on disk, in buckets by a hash of the episode's number: one bucket at a time fits into memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from gradientdice.atomic import make_folder, write_atomically
from gradientdice.data.copies import mixed

# 10⁸ runs of a few numbers each are some gigabytes: a bucket is some tens of megabytes.
BUCKETS = 128


@dataclass(frozen=True)
class Spill:
    """The runs of a pass, one file per part, sorted by bucket.

    Attributes:
        folder: where they are written.
    """

    folder: Path

    def write(self, part: int, ids: Int[np.ndarray, " m"], runs: Float[np.ndarray, "m k"]) -> None:
        """Writes the runs of one part, in their order; a second time puts them in the place of the first."""
        bucket = (mixed(ids.astype(np.uint64)) % np.uint64(BUCKETS)).astype(np.int64)
        order = np.argsort(bucket, kind="stable")
        bounds = np.searchsorted(bucket[order], np.arange(BUCKETS + 1))
        make_folder(self.folder)
        for name, array in (("bounds", bounds), ("ids", ids[order]), ("runs", runs[order])):
            write_atomically(self._path(part, name), lambda place, array=array: np.save(place, array))

    def buckets(self) -> Iterator[tuple[Int[np.ndarray, " m"], Float[np.ndarray, "m k"]]]:
        """The runs of one bucket after the other: those of an episode together, in the order of the log."""
        parts = sorted(self.folder.glob("*.bounds.npy"))
        stored = [
            tuple(np.load(path.with_name(path.name.replace("bounds", name)), mmap_mode="r") for name in _NAMES)
            for path in parts
        ]
        for bucket in range(BUCKETS):
            pieces = [(slice(*bounds[bucket : bucket + 2]), ids, runs) for bounds, ids, runs in stored]
            ids = np.concatenate([ids[rows] for rows, ids, _ in pieces])
            if len(ids):
                order = np.argsort(ids, kind="stable")
                yield ids[order], np.concatenate([runs[rows] for rows, _, runs in pieces])[order]

    def _path(self, part: int, name: str) -> Path:
        return self.folder / f"part-{part:08}.{name}.npy"


_NAMES = ("bounds", "ids", "runs")
