"""Tries wrong calls, damaged files, full disks and kills, and writes docs/reliability.md with the counts."""

import argparse
import os
import platform
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import gradientdice as gd
from gradientdice.atomic import write_atomically
from gradientdice.checkpoint import load_checkpoint, save_checkpoint
from reliability.calls import Call, wrong_calls
from reliability.damage import damaged_files, same_logs
from reliability.faults import KINDS, full_disks
from reliability.killed_sweep import MOMENTS, PORTIONS, kills_at_every_portion, sweep

PAGE = """# What holds when things go wrong

## What is promised

- **Bad input ends in one sentence.** A wrong type, shape or value in any public call raises `InputError`, which names the
  argument, the first bad row and the remedy. On the command line it is one line and exit code 2; `--debug` before the command
  shows the traceback. Nothing is silently made into something else: masks, complex numbers, words, ragged rows.
- **A file is read as it was written, or refused.** `.npz`, Parquet and CSV are read by one layer; pickles are never read, and
  a file that claims more memory than there is takes none. The library's own files have checksums, CSV files in their first
  line. A CSV file of another program has none, and text without a checksum cannot be checked: a digit that became another
  digit is another log.
- **A file is written whole or not at all.** The new one is written beside the old one, brought to the disk and renamed. A
  full disk, a kill, or several threads and processes that save to one path leave a whole file. Only regular files that may
  be written are replaced, never a read-only one, a link, a folder or a device. A reader gets the old file or the new one,
  never columns of both; of a folder whose files are replaced meanwhile it says so.
- **Training goes on where it was.** A checkpoint belongs to the data, the settings, the program with every number of its
  optimiser, the versions and the precision; anything else, or a single flipped bit, is refused. Ctrl-C ends training at its
  next portion. A run that was stopped or killed goes on to the same bits.
- **A command ends within two seconds of Ctrl-C**, also where it is in a long computation outside of Python.

## How it is tested

`make test` tries a part of what follows, hypothesis other values and several at a time, and with real processes: several that
write to one path, a user without permissions, a kill and Ctrl-C. `make test-all` tries all of it. `make reliability` counts,
and writes this page. These counts are those of `{command}`.

| what was tried | cases | refused in a sentence | right | wrong |
|---|---|---|---|---|
{rows}

The longest case took {longest:.1f} seconds, kills aside. All with Python {python} on {system}.

- A call has one wrong argument; it counts as right if it came to an end, with a value that the argument may have, such as
  None where it may be left out. Nobody judges these one by one.
- A damaged file counts as right if it was read with the numbers that it had before.
- A disk is full when the system itself fails every write of a file beyond so many bytes, for every number of bytes up to the
  whole file. It was refused well if the old file was there unchanged and nothing beside it.
- A sweep of a table and of networks is killed just before or just after each of its checkpoints gets its name, by a signal
  that no program can answer; it counts as right if the last of its processes came to the same bits as one that nobody killed.
"""

FILES = 100_000
Outcome = tuple[Counter, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="tries only every so many-th case")
    every = parser.parse_args().every
    warnings.simplefilter("ignore")
    rows, longest = [], 0.0
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        for what, work in (
            ("calls with a wrong argument", lambda: _calls(Path(name), every)),
            ("damaged files", lambda: _files(Path(name), FILES // every)),
            ("checkpoints with one flipped bit", lambda: _checkpoints(Path(name) / "state.safetensors", every)),
            ("full disks", lambda: _disks(Path(name), every)),
            ("kills of a sweep, and its end", lambda: (_kills(Path(name), every), 0.0)),
        ):
            counts, slowest = work()
            longest = max(longest, slowest)
            figures = " | ".join(f"{counts[kind]:,}" for kind in ("refused", "right", "wrong"))
            rows.append(f"| {what} | {sum(counts.values()):,} | {figures} |")
            print(rows[-1], flush=True)
    page = PAGE.format(
        rows="\n".join(rows),
        longest=longest,
        python=platform.python_version(),
        system=platform.system(),
        command="make reliability" if every == 1 else f"python benchmarks/bad_input.py --every {every}",
    )
    write_atomically(ROOT / "docs" / "reliability.md", lambda place: place.write_text(page, encoding="utf-8"))


def _calls(folder: Path, every: int) -> Outcome:
    def accepted(call: Call) -> str:
        call.function(**call.arguments)
        return "right"

    return _tried((str(call), lambda call=call: accepted(call)) for call in islice(wrong_calls(folder), 0, None, every))


def _files(folder: Path, count: int) -> Outcome:
    def read(path: Path, log: gd.Transitions) -> str:
        return "right" if same_logs(gd.load(path), log) else "wrong"

    damaged = damaged_files(folder, count)
    return _tried((what, lambda path=path, log=log: read(path, log)) for path, log, what in damaged)


def _checkpoints(path: Path, every: int) -> Outcome:
    identity = {"run": 1}
    save_checkpoint(path, {"a": np.arange(3), "b": np.ones(2, np.float32)}, identity)
    content = path.read_bytes()

    def load(bit: int) -> str:
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        load_checkpoint(path, identity)
        return "wrong"

    return _tried((f"bit {bit}", lambda bit=bit: load(bit)) for bit in range(0, 8 * len(content), every))


def _kills(folder: Path, every: int) -> Counter:
    counts, whole = Counter(), sweep()
    for moment in MOMENTS:
        kills = kills_at_every_portion(folder / moment, moment, every)
        same = kills <= 2 * PORTIONS and sweep(folder / moment).equals(whole)
        counts["right" if same else "wrong"] += kills
    return counts


def _tried(tries: Iterable[tuple[str, Callable[[], str]]]) -> Outcome:
    """How many tries ended in which way, and the seconds of the slowest; what is wrong is printed."""
    counts, slowest = Counter(), 0.0
    for what, work in tries:
        begun = time.monotonic()
        try:
            outcome = work()
            if outcome == "wrong":
                print(f"{what}: accepted")
        except gd.InputError:
            outcome = "refused"
        except Exception as error:  # what must not be: counted as wrong, and printed
            outcome = "wrong"
            print(f"{what}: {type(error).__name__}: {error}")
        counts[outcome] += 1
        slowest = max(slowest, time.monotonic() - begun)
    return counts, slowest


def _disks(folder: Path, every: int) -> Outcome:
    counts, slowest = Counter(), 0.0
    for suffix in KINDS:
        begun = time.monotonic()
        (folder / suffix).mkdir()
        for fine in full_disks(folder / suffix, suffix, every):
            counts["refused" if fine else "wrong"] += 1
            slowest, begun = max(slowest, time.monotonic() - begun), time.monotonic()
    return counts, slowest


if __name__ == "__main__":
    main()
