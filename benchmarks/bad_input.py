"""Tries wrong calls, damaged files, full disks and kills, and writes docs/reliability.md with the counts.

The counts of each kind are kept as soon as they are there: the same command goes on from them after an interruption, as long
as the sources are the same. They are gone when the page is written.
"""

import argparse
import hashlib
import json
import os
import platform
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import gradientdice as gd
from gradientdice.base.atomic import make_folder, write_atomically
from gradientdice.base.checkpoint import load_checkpoint, save_checkpoint
from gradientdice.log.scanning.spill import Spill
from gradientdice_studies.store import ResultStore
from reliability import killed_scan, killed_sweep
from reliability.calls import Call, wrong_calls
from reliability.damage import damaged_files, flipped_bits, same_logs, scanned
from reliability.faults import KINDS, full_disks
from reliability.killing import MOMENTS, Kills

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
  never columns of both; of a folder whose files are replaced meanwhile it says so. A scanned log is read several times: a
  file of it that changes, or is gone, before the answer is there is named.
- **Training goes on where it was.** A checkpoint belongs to the data, the settings, the program with every number of its
  optimiser, the versions and the precision; anything else, or a single flipped bit, is refused. Ctrl-C ends training at its
  next portion. A run that was stopped or killed goes on to the same bits. The same holds for passes over a scanned log and
  for the parts of an experiment. Of a policy or of features that are functions, a scanned log's checkpoint knows what they
  give at 10,000 rows from all over the log: two that differ only elsewhere are not told apart.
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
- A damaged file counts as right if it was read with the numbers that it had before. Scanned files are read in batches of
  ten rows.
- A disk is full when the system itself fails every write of a file beyond so many bytes, for every number of bytes up to the
  whole file. It was refused well if the old file was there unchanged and nothing beside it.
- A sweep of a table and of networks, and passes over scanned logs with features and with episodes in no order, are killed
  just before or just after each of their checkpoints and other files gets its name, by a signal that no program can answer.
  A kill counts as right if the last of the processes came to the same bits as one that nobody killed.
"""

FILES, SCANNED_FILES = 20_000, 5_000  # `make test-all` tries five times as many
OUTCOMES = ("refused", "right", "wrong")
Outcome = tuple[Counter, float]
Damaged = Iterator[tuple[Path, gd.Transitions, str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="tries only every so many-th case")
    every = parser.parse_args().every
    warnings.simplefilter("ignore")
    place = ROOT / "build" / "reliability.json"
    done = _kept(place, every)
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        for what, work in (
            ("calls with a wrong argument", lambda: _calls(Path(name), every)),
            ("checkpoints with one flipped bit", lambda: _checkpoints(Path(name) / "state.safetensors", every)),
            ("parts of results with one flipped bit", lambda: _results(Path(name) / "results", every)),
            ("spilled episodes with one flipped bit", lambda: _spilled(Path(name) / "spilled", every)),
            ("full disks", lambda: _disks(Path(name), every)),
            ("damaged files, loaded", lambda: _files(damaged_files(Path(name), FILES // every), gd.load)),
            ("damaged files, scanned", lambda: _files(_parquet(Path(name), SCANNED_FILES // every), scanned)),
            ("kills of a sweep, and its end", lambda: (_killed_sweeps(Path(name) / "sweeps", every), 0.0)),
            ("kills of a scan, and its end", lambda: (_killed_scans(Path(name) / "scans", every), 0.0)),
        ):
            if what not in done["kinds"]:
                counts, slowest = work()
                done["kinds"][what] = [{kind: counts[kind] for kind in OUTCOMES}, slowest]
                make_folder(place.parent)
                write_atomically(place, lambda path: path.write_text(json.dumps(done)))
            print(_row(what, done["kinds"][what][0]), flush=True)
    page = PAGE.format(
        rows="\n".join(_row(what, counts) for what, (counts, _) in done["kinds"].items()),
        longest=max(slowest for _, slowest in done["kinds"].values()),
        python=platform.python_version(),
        system=platform.system(),
        command="make reliability" if every == 1 else f"python benchmarks/bad_input.py --every {every}",
    )
    write_atomically(ROOT / "docs" / "reliability.md", lambda place: place.write_text(page, encoding="utf-8"))
    place.unlink()


def _kept(place: Path, every: int) -> dict[str, Any]:
    """What an earlier run of the same sources has counted."""
    sources = hashlib.sha256(str(every).encode())
    for folder in ("src", "studies/src", "tests/reliability", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            sources.update(path.read_bytes())
    fresh = {"sources": sources.hexdigest(), "kinds": {}}
    try:
        found = json.loads(place.read_text())
        return found if found["sources"] == fresh["sources"] else fresh
    except (OSError, ValueError, KeyError, TypeError):
        return fresh


def _row(what: str, counts: dict[str, int]) -> str:
    figures = " | ".join(f"{counts[kind]:,}" for kind in OUTCOMES)
    return f"| {what} | {sum(counts.values()):,} | {figures} |"


def _calls(folder: Path, every: int) -> Outcome:
    def accepted(call: Call) -> str:
        call.function(**call.arguments)
        return "right"

    return _tried((str(call), lambda call=call: accepted(call)) for call in islice(wrong_calls(folder), 0, None, every))


def _parquet(folder: Path, count: int) -> Damaged:
    return damaged_files(folder, count, (".parquet",))


def _files(damaged: Damaged, read: Callable[[Path], gd.Transitions]) -> Outcome:
    def compared(path: Path, log: gd.Transitions) -> str:
        return "right" if same_logs(read(path), log) else "wrong"

    return _tried((what, lambda path=path, log=log: compared(path, log)) for path, log, what in damaged)


def _checkpoints(path: Path, every: int) -> Outcome:
    save_checkpoint(path, {"a": np.arange(3), "b": np.ones(2, np.float32)}, {"run": 1})
    return _flipped([path], lambda: load_checkpoint(path, {"run": 1}), every)


def _results(folder: Path, every: int) -> Outcome:
    store = ResultStore(folder, "small", {})
    store.write(store.part("one.json"), lambda place: place.write_text('[{"value": 0.5, "low": 0.25}]'))
    return _flipped(sorted(store.part("").iterdir()), lambda: ResultStore(folder, "small", {}), every)


def _spilled(folder: Path, every: int) -> Outcome:
    """Right is what has the numbers that were written: not every bit of a header matters."""
    ids, runs = np.arange(5), np.random.default_rng(0).normal(size=(5, 2))
    Spill(folder, 1).write(0, ids, runs)

    def read() -> str:
        found = [np.concatenate(column) for column in zip(*Spill(folder, 1).buckets(), strict=True)]
        order = np.argsort(found[0])
        same = np.array_equal(found[0][order], ids) and np.array_equal(found[1][order], runs)
        return "right" if same else "wrong"

    return _flipped(sorted(folder.iterdir()), read, 8 * every)  # one bit of each byte


def _flipped(paths: list[Path], read: Callable[[], Any], every: int) -> Outcome:
    """Each bit of each file, flipped: whatever `read` returns is wrong, unless it says that it is right."""

    def judged() -> str:
        return "right" if read() == "right" else "wrong"

    return _tried((f"{path.name}, bit {bit}", judged) for path in paths for bit in flipped_bits(path, every))


def _killed_sweeps(folder: Path, every: int) -> Counter:
    counts, whole = Counter(), killed_sweep.sweep()
    for moment in MOMENTS:
        place = folder / moment
        kills = Kills(moment, killed_sweep.FILES, every=every).until_the_end(killed_sweep.__file__, place)
        same = kills <= killed_sweep.FILES and killed_sweep.sweep(place).equals(whole)
        counts["right" if same else "wrong"] += kills
    return counts


def _killed_scans(folder: Path, every: int) -> Counter:
    counts = Counter()
    for moment in MOMENTS:
        place = folder / moment
        whole = killed_scan.answers(place)
        planned = Kills(moment, killed_scan.KILLS, killed_scan.PORTION, every)
        kills = planned.until_the_end(killed_scan.__file__, place)
        same = kills <= killed_scan.KILLS and killed_scan.answers(place, place / "checkpoint") == whole
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
