"""Answers that several machines computed, gathered in one table, and the results page from it.

`python -m gradientdice_studies.gather control TABLE [--lines FILE…] [--shared FILE…] [--costs FILE…] [--page PAGE]`
adds files of JSON lines, `{"rows": […]}` one for each log, to a table, and writes the page from all of it. An answer
that is there already is replaced. Files of a machine that many processes shared are --shared: what answers cost there
is left out. From files of --costs, answers that are there already get what they cost and nothing else, and all other
costs of the table are forgotten: costs are compared, and so must come from one machine.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from gradientdice.base.atomic import write_atomically
from gradientdice.base.errors import InputError
from gradientdice_studies.frames import records
from gradientdice_studies.registry import EXPERIMENTS
from gradientdice_studies.reproduce import write_page
from gradientdice_studies.store import ResultStore

# What tells the answers of an experiment apart.
KEYS = {"control": ("task", "rows", "seed", "method", "discount"), "ranking": ("case", "seed", "policy")}
COSTS = ("seconds", "mebibytes", "cpu_seconds")


def answers_in(lines: Iterable[str], keys: Sequence[str], *, costs: bool = True) -> list[dict[str, Any]]:
    """The answers of one experiment, those with its keys.

    Args:
        lines: JSON, each with the rows of a log; lines without rows are those of logs that failed.
        keys: the columns that tell its answers apart.
        costs: whether to keep what they cost.
    """
    found = []
    for line in lines:
        for row in json.loads(line).get("rows", ()):
            if all(key in row for key in keys):
                found.append({name: value if costs or name not in COSTS else None for name, value in row.items()})
    return found


def gathered(known: pd.DataFrame | None, new: Sequence[dict[str, Any]], keys: Sequence[str]) -> pd.DataFrame:
    """Known and new answers, sorted by their keys; of the same answer the last."""
    parts = [part for part in (known, pd.DataFrame(new)) if part is not None and len(part)]
    if not parts:
        raise InputError("There is no answer of this experiment: give --lines or --shared.")
    frame = pd.concat([part.astype(object) for part in parts], ignore_index=True).infer_objects()
    return frame.drop_duplicates(list(keys), keep="last").sort_values(list(keys)).reset_index(drop=True)


def _answers(files: Iterable[Path], keys: Sequence[str], *, costs: bool = True) -> list[dict[str, Any]]:
    texts = (file.read_text(encoding="utf-8") for file in files)
    return [row for text in texts for row in answers_in(text.splitlines(), keys, costs=costs)]


def with_costs(frame: pd.DataFrame, measured: Sequence[dict[str, Any]], keys: Sequence[str]) -> pd.DataFrame:
    """The table with these costs and no others; answers that it does not have are added."""
    forgotten = frame.assign(**dict.fromkeys((name for name in COSTS if name in frame), float("nan")))
    whole = {tuple(row[key] for key in keys): row for row in measured}
    rows = []
    for row in records(forgotten):
        cost = whole.pop(tuple(row[key] for key in keys), {})
        rows.append(row | {name: cost[name] for name in COSTS if name in cost})
    return gathered(None, rows + list(whole.values()), keys)


def read_answers(table: Path) -> pd.DataFrame:
    """A table as it was written, to the bit."""
    # From version 3.1 on pandas does so by itself, and deprecates the argument; before, the last digit may be another.
    version = tuple(int(part) for part in pd.__version__.split(".")[:2])
    exact: dict[str, Any] = {} if version >= (3, 1) else {"float_precision": "round_trip"}
    return pd.read_csv(table, **exact)


def main(words: Sequence[str] | None = None) -> None:
    """Gathers, and writes."""
    parser = argparse.ArgumentParser(description="Gathers answers of several machines and writes the results page.")
    parser.add_argument("experiment", choices=sorted(KEYS))
    parser.add_argument("table", type=Path, help="a .csv.gz file, which is written anew")
    parser.add_argument("--lines", type=Path, nargs="*", action="extend", default=[])
    parser.add_argument("--shared", type=Path, nargs="*", action="extend", default=[])
    parser.add_argument("--costs", type=Path, nargs="*", action="extend", default=[])
    parser.add_argument("--page", type=Path)
    given = parser.parse_args(words)
    keys = KEYS[given.experiment]
    new = _answers(given.shared, keys, costs=False) + _answers(given.lines, keys)
    known = read_answers(given.table) if given.table.exists() else None
    frame = gathered(known, new, keys)
    if measured := _answers(given.costs, keys):
        frame = with_costs(frame, measured, keys)
    if given.experiment == "control":
        from gradientdice_studies.control.truth import with_truths

        frame = with_truths(frame)
    # Without a time and a name in it: the same answers are the same file.
    packed = gzip.compress(frame.to_csv(index=False).encode(), mtime=0)
    write_atomically(given.table, lambda place: place.write_bytes(packed))
    if given.page is None:
        return
    experiment = EXPERIMENTS[given.experiment]
    steps = experiment.load()
    # The page is made of what is in the file.
    frame = read_answers(given.table)
    with TemporaryDirectory() as folder:
        figures = steps.draw(ResultStore(Path(folder), given.experiment, {}), frame)
        write_page(experiment, given.page, steps.context(frame, steps.full), figures)


if __name__ == "__main__":
    main()
