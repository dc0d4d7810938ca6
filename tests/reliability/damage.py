"""Damaged files, made from good ones by a seeded generator: flipped bits, cuts, inserted and overwritten bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

import gradientdice as gd
from gradientdice.log.fields import ARRAYS

SUFFIXES = (".npz", ".parquet", ".csv")


def good_log(seed: int) -> gd.Transitions:
    """A log with every column."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 30))
    width = (n, 2) if seed % 2 else (n,)
    return gd.Transitions(
        states=rng.normal(size=width),
        actions=rng.integers(0, 3, n),
        rewards=rng.normal(size=n),
        next_states=rng.normal(size=width),
        initial_states=rng.normal(size=(max(1, n // 2), *width[1:])),
        terminated=rng.random(n) < 0.2,
        episodes=np.arange(n) // 5,
        weights=rng.random(n) + 0.1,
    )


def damaged_files(
    folder: Path, count: int, suffixes: tuple[str, ...] = SUFFIXES, seed: int = 0
) -> Iterator[tuple[Path, gd.Transitions, str]]:
    """So many damaged files, one after the other under the same names: (file, the log it was, what was done to it)."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        suffix = suffixes[number % len(suffixes)]
        path, log = folder / f"log{suffix}", good_log(number // 100)
        if number % 100 < len(suffixes):
            log.save(folder / f"good{suffix}")
        content = bytearray((folder / f"good{suffix}").read_bytes())
        what = _damage(content, rng)
        path.write_bytes(content)
        yield path, log, f"case {number}: {suffix}, {what}"


def _damage(content: bytearray, rng: np.random.Generator) -> str:
    place = int(rng.integers(len(content)))
    kind = ("flip", "cut", "insert", "overwrite", "drop", "several flips")[int(rng.integers(6))]
    if kind == "flip":
        content[place] ^= 1 << int(rng.integers(8))
    elif kind == "cut":
        del content[place:]
    elif kind == "insert":
        content[place:place] = rng.bytes(int(rng.integers(1, 20)))
    elif kind == "overwrite":
        some = rng.bytes(int(rng.integers(1, 20)))
        content[place : place + len(some)] = some
    elif kind == "drop":
        del content[place : place + int(rng.integers(1, 20))]
    else:
        for _ in range(5):
            content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
    return f"{kind} at {place}"


def flipped_bits(path: Path, every: int = 1) -> Iterator[int]:
    """For each bit of a file: the file with that bit flipped; as it was in the end."""
    content = path.read_bytes()
    for bit in range(0, 8 * len(content), every):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        yield bit
    path.write_bytes(content)


def scanned(path: Path) -> gd.Transitions:
    """All rows of a scanned log, read in batches of a few."""
    return gd.scan(path, batch_rows=10).sample


def same_logs(first: gd.Transitions, second: gd.Transitions) -> bool:
    """Whether two logs hold the same numbers."""
    names = ARRAYS
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in names if name != "truncated")
