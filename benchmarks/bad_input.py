"""Tries wrong calls, damaged files and full disks by the thousand, and writes docs/reliability.md with the counts."""

import argparse
import os
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import gradientdice as gd
from gradientdice.atomic import write_atomically
from reliability.calls import wrong_calls
from reliability.damage import damaged_files, same_logs
from reliability.faults import KINDS, full_disks

LONGEST = 5.0
PAGE = """# What holds when things go wrong

## What is promised

- **Bad input ends in one sentence.** A wrong type, shape or value in any public call raises `InputError`, which names the
  argument, the first bad row and the remedy. On the command line it is one line and exit code 2; `--debug` before the command
  shows the traceback. Nothing is silently made into something else: masks, complex numbers, words, ragged rows.
- **A file is read as it was written, or refused.** `.npz`, Parquet and CSV are read by one layer; pickles are never read, and
  a file that claims more memory than there is takes none. Arrays in `.npz` and Parquet files of the library have checksums.
  Text has none: a digit of a CSV file that became another digit is another log.
- **A file is written whole or not at all.** The new one is written beside the old one, brought to the disk and renamed. A
  full disk, a kill, or several threads and processes that save to one path leave a whole file. Only regular files are
  replaced, never a link, a folder or a device.
- **Training goes on where it was.** A checkpoint belongs to the data, the settings, the program with every number of its
  optimiser, the versions and the precision; anything else, or a single flipped bit, is refused. Ctrl-C ends training at its
  next portion. A run that was stopped or killed goes on to the same bits.
- **A command ends within two seconds of Ctrl-C**, also where it is in a long computation outside of Python.

## How it is tested

`make test` tries a part of what follows, with hypothesis for logs, policies and files; `make test-all` tries all of it, and also
stops training after every portion, for tables and for networks, and compares the bits. `make reliability` counts, and writes
this page.

| what was tried | cases | ended in a sentence | went through | CSV with other numbers | anything else |
|---|---|---|---|---|---|
{rows}

The longest case took {longest:.1f} seconds. A full disk is one at which the system itself fails every write of a file beyond so
many bytes, for every number of bytes up to the whole file; it ended well if the old file was there unchanged and nothing
beside it. A damaged `.npz` or Parquet file that went through held the same numbers as before. A call that went through had a
value that the argument may have, such as None where it may be left out: nobody judges these one by one.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000, help="how many damaged files")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows, longest = [], 0.0
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        for what, counts, slowest in (
            ("calls with a wrong argument", *_calls()),
            ("damaged files", *_files(Path(name), arguments.files)),
            ("full disks", *_disks(Path(name))),
        ):
            longest = max(longest, slowest)
            kinds = ("refused", "right", "text", "bad")
            figures = " | ".join(f"{figure:,}" for figure in (sum(counts.values()), *(counts[kind] for kind in kinds)))
            rows.append(f"| {what} | {figures} |")
    page = PAGE.format(rows="\n".join(rows), longest=longest)
    write_atomically(ROOT / "docs" / "reliability.md", lambda place: place.write_text(page, encoding="utf-8"))
    print(page)


def _calls() -> tuple[Counter, float]:
    def accepted(call) -> str:
        call.function(**call.arguments)
        return "right"

    return _tried((str(call), lambda call=call: accepted(call)) for call in wrong_calls())


def _files(folder: Path, count: int) -> tuple[Counter, float]:
    def read(path: Path, log: gd.Transitions) -> str:
        if same_logs(gd.load(path), log):
            return "right"
        return "text" if path.suffix == ".csv" else "bad"

    damaged = damaged_files(folder, count)
    return _tried((what, lambda path=path, log=log: read(path, log)) for path, log, what in damaged)


def _tried(tries: Iterable[tuple[str, Callable[[], str]]]) -> tuple[Counter, float]:
    """How many tries ended in which way, and the seconds of the slowest; what is bad is printed."""
    counts, slowest = Counter(), 0.0
    for what, work in tries:
        begun = time.monotonic()
        try:
            outcome = work()
            if outcome == "bad":
                print(f"{what}: read, with other numbers")
        except gd.InputError:
            outcome = "refused"
        except Exception as error:  # what must not be: counted as bad, and printed
            outcome = "bad"
            print(f"{what}: {type(error).__name__}: {error}")
        counts[outcome] += 1
        slowest = max(slowest, time.monotonic() - begun)
    return counts, slowest


def _disks(folder: Path) -> tuple[Counter, float]:
    counts, slowest = Counter(), 0.0
    for suffix in KINDS:
        begun = time.monotonic()
        (folder / suffix).mkdir()
        for fine in full_disks(folder / suffix, suffix):
            counts["refused" if fine else "bad"] += 1
            slowest, begun = max(slowest, time.monotonic() - begun), time.monotonic()
    return counts, slowest


if __name__ == "__main__":
    main()
