"""What more effort buys: the default on logs of the control suite with each effort, one line per effort.

    python benchmarks/effort.py [--rows 10000] [--logs 2] [--effort normal --effort thorough] [--workers 2] [TASK …]

By default on the tasks that methods are developed on. Errors and half-widths are in units of the gap between the
target's value and the behaviour's, as on the page of the suite; a cell is a task and a discount. Logs are kept in the
folder given by --keep, and answers in the file given by --answers, one JSON line for each log: what is there is not
computed again, so that another version of the library needs another file. Seconds are per log and discount in processes
that share the machine: they compare efforts, no more.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from gradientdice.base.effort import Effort
from gradientdice_studies.control.methods import default_answers
from gradientdice_studies.control.run import Cell, answer_rows, stored_log
from gradientdice_studies.control.summary import pooled, summarised
from gradientdice_studies.control.tasks import TASKS
from gradientdice_studies.frames import groups

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--logs", type=int, default=2, help="of each task")
    parser.add_argument("--effort", action="append", choices=[str(effort) for effort in Effort])
    parser.add_argument("--workers", type=int, default=1, help="processes side by side")
    parser.add_argument("--keep", type=Path, default=ROOT / "results/control/logs", help="where logs are kept")
    parser.add_argument("--answers", type=Path, default=ROOT / "results/effort.jsonl", help="where answers are kept")
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    options.answers.parent.mkdir(parents=True, exist_ok=True)
    efforts = [Effort(name) for name in options.effort or Effort]
    tasks = options.tasks or [name for name in TASKS if TASKS[name]().half == "develop"]
    cells = [Cell(task, options.rows, seed) for seed in range(options.logs) for task in tasks]
    jobs = [(cell, effort) for cell in cells for effort in efforts]
    for cell in cells:
        stored_log(TASKS[cell.task](), cell, options.keep)
    compute(jobs, options)
    wanted = {(cell.name, str(effort)) for cell, effort in jobs}
    rows = [row for name, effort, found in read(options.answers) if (name, effort) in wanted for row in found]
    print(table(pd.DataFrame(rows)))


def compute(jobs: Sequence[tuple[Cell, Effort]], options: argparse.Namespace) -> None:
    """Computes the answers that are not in the file, and appends them."""
    known = {(name, effort) for name, effort, _ in read(options.answers)}
    missing = [(cell, effort) for cell, effort in jobs if (cell.name, str(effort)) not in known]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, mp_context=context) as pool, options.answers.open("a") as out:
        futures = {pool.submit(answered, *job, options.keep): job for job in missing}
        for future in as_completed(futures):
            cell, effort = futures[future]
            out.write(json.dumps({"name": cell.name, "effort": str(effort), "rows": future.result()}) + "\n")
            out.flush()
            print(cell.name, effort, flush=True)


def answered(cell: Cell, effort: Effort, keep: Path) -> list[dict[str, Any]]:
    """The default's answers for one log, one row per discount."""
    task = TASKS[cell.task]()
    method = partial(default_answers, effort=effort)
    return answer_rows(str(effort), method, task, cell, stored_log(task, cell, keep))


def read(path: Path) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """The log's name, the effort and the answers of each line of a file that is there."""
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            found = json.loads(line)
            yield found["name"], found["effort"], found["rows"]


def table(answers: pd.DataFrame) -> str:
    """One line per effort: medians over cells, shares over logs."""
    lines = ["effort      cells  RMSE/gap  coverage  half-width/gap  right  wrong  seconds"]
    by_effort = {str(name): cells for (name,), cells in groups(summarised(answers), "method")}
    for effort in (str(effort) for effort in Effort):
        if effort in by_effort:
            cells = by_effort[effort]
            figures = pooled(cells)
            lines.append(
                f"{effort:10s} {len(cells):6d} {figures['rmse']:9.3f} {figures['coverage']:9.2f} "
                f"{figures['width']:15.2f} {figures['right']:6.2f} {figures['wrong']:6.2f} {figures['seconds']:8.1f}"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
