"""Runs of episodes on disk, in buckets by a hash of the episode's number: one bucket at a time fits into memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from jaxtyping import Float, Int

from gradientdice.base.atomic import make_folder, write_atomically
from gradientdice.base.errors import InputError
from gradientdice.log.copies import mixed
from gradientdice.log.files.reading import guarded

# 10⁸ runs of a few numbers each are some gigabytes: a bucket is some tens of megabytes.
BUCKETS = 128


# Of a part's files: where each bucket begins and ends with the checksums of both others by bucket, then these.
NAMES = ("index", "ids", "runs")


@dataclass(frozen=True)
class Spill:
    """The runs of a pass, sorted by bucket, in three files for each part.

    Attributes:
        folder: where they are written.
        parts: how many parts the log has. Files of other parts are of an earlier log, and not read.
    """

    folder: Path
    parts: int

    def write(self, part: int, ids: Int[np.ndarray, " m"], runs: Float[np.ndarray, "m k"]) -> None:
        """Writes the runs of one part, in their order; a second time puts them in the place of the first."""
        bucket = (mixed(ids.astype(np.uint64)) % np.uint64(BUCKETS)).astype(np.int64)
        order = np.argsort(bucket, kind="stable")
        ids, runs = ids[order], runs[order]
        bounds = np.searchsorted(bucket[order], np.arange(BUCKETS + 1))
        sums = [[_crc(array[bounds[k] : bounds[k + 1]]) for k in range(BUCKETS)] for array in (ids, runs)]
        index = np.concatenate([bounds, *sums])
        make_folder(self.folder)
        files = zip(NAMES, (np.append(index, _crc(index)), ids, runs), strict=True)
        for name, array in reversed(list(files)):  # the index comes last: what it tells of is there
            write_atomically(self._path(part, name), lambda place, array=array: save_array(place, array))

    def buckets(self) -> Iterator[tuple[Int[np.ndarray, " m"], Float[np.ndarray, "m k"]]]:
        """The runs of one bucket after the other: those of an episode together, in the order of the log."""
        stored = {part: self._stored(part) for part in range(self.parts)}
        for bucket in range(BUCKETS):
            pieces = [self._piece(part, bucket, *arrays) for part, arrays in stored.items() if _has(arrays[0], bucket)]
            if pieces:
                ids, runs = (np.concatenate(column) for column in zip(*pieces, strict=True))
                order = np.argsort(ids, kind="stable")
                yield ids[order], runs[order]

    def _stored(self, part: int) -> list[np.ndarray]:
        """The arrays of a part, of which nothing but the index is read here; it alone if there are no runs."""
        index = np.asarray(self._array(part, NAMES[0]))
        if index.shape != (3 * BUCKETS + 2,) or index[-1] != _crc(index[:-1]):
            raise InputError(f"{self._path(part, NAMES[0])} is not {WHOLE} (its checksum differs).")
        return [index, *(self._array(part, name) for name in NAMES[1:] if index[BUCKETS])]

    def _array(self, part: int, name: str) -> np.ndarray:
        path = self._path(part, name)
        return guarded(path, WHOLE, lambda: np.load(path, mmap_mode="r"))

    def _piece(self, part: int, bucket: int, index: np.ndarray, *arrays: np.ndarray) -> list[np.ndarray]:
        """The runs of a part in one bucket, as they were written."""
        rows, found = slice(*index[bucket : bucket + 2]), []
        for k, array in enumerate(arrays):
            found.append(np.array(array[rows]))
            if _crc(found[-1]) != index[(k + 1) * BUCKETS + 1 + bucket]:
                raise InputError(f"{self._path(part, NAMES[k + 1])} is not {WHOLE} (its checksum differs).")
        return found

    def _path(self, part: int, name: str) -> Path:
        return self.folder / f"part-{part:08}.{name}.npy"


# A checkpoint says where the pass goes on, and these files are a part of it.
WHOLE = "the whole file that was written: delete the folder of the checkpoint to start anew"


def save_array(place: Path, array: np.ndarray) -> None:
    """Writes an array through Python: NumPy's own way into a file does not notice a full disk."""
    with place.open("wb") as file:
        np.lib.format.write_array(SimpleNamespace(write=file.write), array, allow_pickle=False)  # pyright: ignore


def _has(index: np.ndarray, bucket: int) -> bool:
    return bool(index[bucket + 1] > index[bucket])


def _crc(array: np.ndarray) -> int:
    return zlib.crc32(array.tobytes())
