"""Every method on logs of every task at several sizes: values, intervals, differences to the behaviour, and costs."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from gradientdice.base.errors import InputError
from gradientdice.base.provenance import provenance
from gradientdice.log.formats.load import load
from gradientdice.log.transitions import Transitions
from gradientdice_studies.control.memory import peak_memory
from gradientdice_studies.control.methods import NETWORKS, Answered, Method, methods
from gradientdice_studies.control.simulate import make_log
from gradientdice_studies.control.tasks import TASKS, Task
from gradientdice_studies.control.truth import truths
from gradientdice_studies.parallel import fill_parts
from gradientdice_studies.store import ResultStore

SIZES = (1_000, 10_000, 100_000)
LARGE = 100_000
LOGS = "logs"
# In the place of a verdict, where a method does not take a log.
REFUSED = "refused"


@dataclass(frozen=True)
class Scale:
    """What is run.

    Attributes:
        logs: per task and size.
        large_logs: of 10⁵ rows, per task.
        largest: the largest size.
        report: 1 to run the half of the tasks that is kept for the report too, 0 to leave it out.
        networks: 1 to run the methods that train networks beside the default too, 0 to leave them out.
        tasks: those of these names alone; all if empty.
    """

    logs: int = 20
    large_logs: int = 8
    largest: int = LARGE
    report: int = 1
    networks: int = 1
    tasks: tuple[str, ...] = ()


QUICK = Scale(logs=2, large_logs=0, largest=1_000, tasks=("cart-pole", "pendulum", "mountain-car"))


@dataclass(frozen=True)
class Cell:
    """One log's place in the grid."""

    task: str
    rows: int
    seed: int

    @property
    def name(self) -> str:
        """Of its files."""
        return f"{self.task}-{self.rows}-{self.seed}"


def cells(scale: Scale) -> Iterator[Cell]:
    """The grid; small logs come first, and seeds before tasks, so that an interrupted run has some of everything."""
    chosen = [name for name in TASKS if not scale.tasks or name in scale.tasks]
    if not scale.report:
        chosen = [name for name in chosen if TASKS[name]().half == "develop"]
    for rows in (size for size in SIZES if size <= scale.largest):
        for seed in range(scale.large_logs if rows == LARGE else scale.logs):
            for name in chosen:
                yield Cell(name, rows, seed)


def run(folder: Path, scale: Scale, *, force: bool = False) -> tuple[ResultStore, pd.DataFrame]:
    """Runs what is missing and gathers it in one table: one row per log, method and discount."""
    chosen = [name for name in methods() if scale.networks or name not in NETWORKS]
    store = ResultStore(folder, "control", {"methods": chosen}, force=force)
    (folder / LOGS).mkdir(exist_ok=True)
    parts = {store.part(f"{cell.name}.json"): (cell, folder / LOGS, chosen) for cell in cells(scale)}
    # A process of its own for each log: what it costs is then what it costs a user.
    fill_parts(store, "logs", parts, answers, fresh=True)
    frame = pd.DataFrame([row for path in parts for row in json.loads(path.read_text())])
    frame.attrs["provenance"] = provenance(scale=asdict(scale))
    store.write(folder / "control.csv", lambda path: frame.to_csv(path, index=False))
    return store, frame


def stored_log(task: Task, cell: Cell, folder: Path) -> Transitions:
    """The log of a cell, from the folder if it has been made before."""
    path = folder / f"{cell.name}.npz"
    if not path.exists():
        data = make_log(task, cell.rows, cell.seed)
        # Under another name until it is whole: the ending says what kind of file it is.
        partial = path.with_name(f"partial-{path.name}")
        data.save(partial)
        partial.replace(path)
    return load(path)


def answers(cell: Cell, logs: Path, chosen: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """One row per method and discount.

    Args:
        cell: which log.
        logs: the folder where logs are kept.
        chosen: the names of the methods; all by default.
    """
    task = TASKS[cell.task]()
    data = stored_log(task, cell, logs)
    rows = []
    for name, method in methods().items():
        if chosen is None or name in chosen:
            rows += answer_rows(name, method, task, cell, data)
    return rows


def answer_rows(name: str, method: Method, task: Task, cell: Cell, data: Transitions) -> list[dict[str, Any]]:
    """One method's rows; a method that refuses the log has rows that say so."""
    found: Sequence[Answered | None]
    note = ""
    with peak_memory() as memory, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is warned of is in the verdict
        try:
            found = method(data, task.target, task.discounts, cell.seed)
        except InputError as error:
            found, note = [None] * len(task.discounts), str(error)
    known = truths()[cell.task]
    rows = []
    for discount, answered in zip(task.discounts, found, strict=True):
        truth = known[discount]
        row = {
            **asdict(cell),
            "half": task.half,
            "method": name,
            "discount": discount,
            "truth": truth.value,
            "true_behavior": truth.behavior,
            "running_error": truth.running_error(cell.rows),
            "episodes": data.units.count,
            "mebibytes": memory.mebibytes,
            "note": note,
        }
        rows.append({**row, **_fields(answered)})
    return rows


EMPTY = ("value", "low", "high", "standard_error", "behavior", "difference", "difference_low", "difference_high")


def _fields(answered: Answered | None) -> dict[str, Any]:
    """The answer's columns; empty where there is none."""
    row: dict[str, Any] = dict.fromkeys((*EMPTY, "seconds")) | {"verdict": REFUSED, "decision": "undecided"}
    if answered is None:
        return row
    estimate, difference = answered.estimate, answered.difference
    row |= {"value": estimate.value, "verdict": str(estimate.verdict), "seconds": answered.seconds}
    if estimate.behavior_seen is not None:
        row["behavior"] = estimate.behavior_seen.value
    if estimate.interval is not None:
        row["low"], row["high"] = estimate.interval
        row["standard_error"] = estimate.standard_error
    if difference is not None:
        row["difference"], row["decision"] = difference.value, difference.decision
        row["difference_low"], row["difference_high"] = difference.interval
    return row
