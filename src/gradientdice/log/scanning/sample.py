"""A part of a scanned log in memory, for what a part tells: tests of assumptions, and features that are learned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.log.fields import ARRAYS
from gradientdice.log.scanning.parts import ArrowPart
from gradientdice.log.transitions import Transitions

if TYPE_CHECKING:
    from gradientdice.log.scanning.log import ScannedLog
    from gradientdice.log.scanning.parts import Batch

# Runs of rows are taken from so many parts: the log may change as it goes on.
PLACES = 16


@dataclass(frozen=True, eq=False)
class Sampled:
    """A part of a log, or all of it.

    Attributes:
        rows: the rows.
        taken: part -> how many of its first rows they were taken from; empty if they are the whole log.
    """

    rows: Transitions
    taken: dict[int, int]


def sampled(log: ScannedLog, most: int) -> Sampled:
    """The whole log if it has at most this many rows, else runs of rows from parts that are spread evenly over it.

    Episodes that a run cuts at its beginning are left out if others are left, so that first rows are starts.
    """
    everything = _everything(log, most)
    if everything is not None:
        if not everything:
            raise InputError("The log has no rows, or none that its filter lets through.")
        return Sampled(_together(log, [_joined(everything)]), {})
    chosen = np.unique(np.linspace(0, len(log.parts) - 1, PLACES).astype(np.int64))
    each = -(-most // len(chosen))
    runs = []
    # No more is read than is taken.
    few = replace(log, batch_rows=min(each, log.batch_rows))
    for part in chosen:
        rows = list(_first_batches(few, int(part), each))
        if rows:
            runs.append((int(part), _joined(rows)))
    heads = [(part, _head(run, each)) for part, run in runs]
    begun = [run for part, head in heads if len((run := _from_first_start(head, first=part == 0))["rewards"])]
    taken = {part: len(head["rewards"]) for part, head in heads}
    return Sampled(_together(log, [_with_cut(run) for run in begun or [head for _, head in heads]]), taken)


def _with_cut(run: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The run with its last row cut, as by a time limit: its episode may go on in rows that were not taken."""
    if "episodes" not in run:
        return run
    cut = np.array(run.get("truncated", np.zeros(len(run["rewards"]))), dtype=bool)
    cut[-1:] |= not bool(run["terminated"][-1]) if "terminated" in run else True
    return {**run, "truncated": cut}


def _everything(log: ScannedLog, most: int) -> list[Batch] | None:
    """All batches of a log; None if it has more rows than that."""
    if sum(part.least_rows for part in log.parts if isinstance(part, ArrowPart)) > most:
        return None
    rows, taken = [], 0
    for part in range(len(log.parts)):
        for batch in _first_batches(log, part, most + 1 - taken):
            rows.append(batch)
            taken += len(batch.data)
        if taken > most:
            return None
    return rows


def _first_batches(log: ScannedLog, part: int, rows: int) -> Iterator[Batch]:
    """Batches of a part until there are so many rows; hardly more is read than that."""
    taken = 0
    whole = log.parts[part]
    pieces = whole.pieces(rows) if isinstance(whole, ArrowPart) else (whole,)
    for piece in pieces:
        for batch in replace(log, parts=(piece,)).batches(0, *ARRAYS, threads=False):
            yield batch
            taken += len(batch.data)
            if taken >= rows:
                return


def _joined(rows: list[Batch]) -> dict[str, np.ndarray]:
    """Some batches as one, field by field."""
    names = [name for name in ARRAYS if getattr(rows[0].data, name) is not None]
    joined = {name: np.concatenate([getattr(batch.data, name) for batch in rows]) for name in names}
    starts = [batch.starts for batch in rows if batch.starts is not None]
    return {**joined, "initial_states": np.concatenate(starts)} if starts else joined


def _head(run: dict[str, np.ndarray], rows: int) -> dict[str, np.ndarray]:
    return {name: array if name == "initial_states" else array[:rows] for name, array in run.items()}


def _from_first_start(run: dict[str, np.ndarray], first: bool) -> dict[str, np.ndarray]:
    """Without the rows of its first episode, which may have begun before it, unless the log begins here."""
    if first or "episodes" not in run:
        return run
    later = run["episodes"] != run["episodes"][0]
    return {name: array if name == "initial_states" else array[later] for name, array in run.items()}


def _together(log: ScannedLog, runs: list[dict[str, np.ndarray]]) -> Transitions:
    names = {name for run in runs for name in run}
    columns = {name: np.concatenate([run[name] for run in runs if name in run]) for name in names}
    return Transitions(**columns, **log.books)
