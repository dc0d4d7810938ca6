"""A disk that is full after so many bytes, for every number of bytes that a file has."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import gradientdice as gd
from gradientdice.base.atomic import write_atomically
from gradientdice.base.checkpoint import save_checkpoint
from gradientdice.log.scanning.spill import save_array

GOOD: Any = {"states": [0, 1, 2], "actions": [0, 1, 0], "rewards": [0.0, 1.0, 2.0], "next_states": [1, 2, 0]}


@contextmanager
def disk_full_after(size: int) -> Iterator[None]:
    """The system itself fails every write beyond so many bytes of a file, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def save_text(path: Path, text: str) -> None:
    write_atomically(path, lambda place: place.write_text(text))


def save_log(path: Path, rewards: list[float]) -> None:
    gd.Transitions(**{**GOOD, "rewards": rewards}).save(path)


def save_state(path: Path, numbers: list[float]) -> None:
    save_checkpoint(path, {"a": np.array(numbers)}, {"run": 1})


def save_runs(path: Path, numbers: list[float]) -> None:
    write_atomically(path, lambda place: save_array(place, np.array(numbers)))


# How a file of each kind is written, and two contents.
KINDS: dict[str, tuple[Callable[[Path, Any], None], Any, Any]] = {
    ".npz": (save_log, [0.0, 1.0, 2.0], [3.0, 4.0, 5.0]),
    ".csv": (save_log, [0.0, 1.0, 2.0], [3.0, 4.0, 5.0]),
    ".parquet": (save_log, [0.0, 1.0, 2.0], [3.0, 4.0, 5.0]),
    ".html": (save_text, "first" * 50, "second" * 60),
    ".safetensors": (save_state, [1.0, 2.0], [3.0, 4.0]),
    ".npy": (save_runs, [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]),
}


def full_disks(folder: Path, suffix: str, every: int = 1) -> Iterator[bool]:
    """For each number of bytes: did saving over a good file end in a sentence, with that file and nothing beside it?"""
    save, first, second = KINDS[suffix]
    path = folder / f"file{suffix}"
    save(path, second)
    whole = path.stat().st_size
    save(path, first)
    before = path.read_bytes()
    for size in range(0, whole, every):
        try:
            with disk_full_after(size):
                save(path, second)
            refused = False
        except gd.InputError as error:
            refused = str(path) in str(error) and "\n" not in str(error)
        yield refused and path.read_bytes() == before and list(folder.iterdir()) == [path]
