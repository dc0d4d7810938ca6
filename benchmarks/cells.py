"""Computes what is missing in a committed table of answers, on as many cores as there are, one JSON line for each log.

    python benchmarks/cells.py control OUT.jsonl [--table docs/results/control/answers.csv.gz] [--rows 10000] …
    python -m gradientdice_studies.gather control docs/results/control/answers.csv.gz --shared OUT.jsonl \
        --page docs/results/control.md

The second command adds them to the table and writes the page. Processes live on, so that a task's programs are compiled
once; what answers cost is then not what they cost a user, and is left out with --shared. After --seconds everything is
stopped; what is done by then is in the file.

    python benchmarks/cells.py control COSTS.jsonl --alone
    python -m gradientdice_studies.gather control docs/results/control/answers.csv.gz --costs COSTS.jsonl …

With --alone, the last log of each task and size goes to each method in a process of its own, with one thread and
nothing compiled before: what it costs there is what it costs a user with one core.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path

import pandas as pd

from gradientdice.base.process import usable_cores
from gradientdice_studies.gather import KEYS

ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}
# Programs that are kept between processes.
KEPT_PROGRAMS = {
    "JAX_COMPILATION_CACHE_DIR": str(Path(tempfile.gettempdir()) / "gradientdice-programs"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.3",
}


def control_jobs(options: argparse.Namespace, known: pd.DataFrame) -> dict[str, partial]:
    """Name -> work, for each log and method of the grid that the table does not have; with --alone for one log each."""
    from gradientdice_studies.control.methods import methods
    from gradientdice_studies.control.run import Scale, answers, cells
    from gradientdice_studies.control.tasks import TASKS

    chosen = options.method or list(methods())
    done = set(zip(known["task"], known["rows"], known["seed"], known["method"], strict=True)) if len(known) else set()
    logs = Path(tempfile.mkdtemp())
    asked = [
        cell
        for cell in cells(Scale())
        if (not options.rows or cell.rows in options.rows)
        and (not options.task or cell.task in options.task)
        and options.half in (None, TASKS[cell.task]().half)
    ]
    if options.alone:
        last = {(cell.task, cell.rows): cell for cell in asked}
        return {
            f"{cell.name} {name}": partial(answers, cell, logs, [name]) for cell in last.values() for name in chosen
        }
    jobs = {}
    for cell in asked:
        missing = [name for name in chosen if (cell.task, cell.rows, cell.seed, name) not in done]
        if missing:
            jobs[cell.name] = partial(answers, cell, logs, missing)
    return jobs


def ranking_jobs(options: argparse.Namespace, known: pd.DataFrame) -> dict[str, partial]:
    from gradientdice_studies.ranking.run import Scale, answers, cells

    done = set(zip(known["case"], known["seed"], strict=True)) if len(known) else set()
    return {cell.name: partial(answers, cell) for cell in cells(Scale()) if (cell.case, cell.seed) not in done}


JOBS = {"control": control_jobs, "ranking": ranking_jobs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=sorted(KEYS))
    parser.add_argument("out", type=Path)
    parser.add_argument("--table", type=Path, help="of answers that are known")
    parser.add_argument("--rows", type=int, action="append", help="control: logs of this size only")
    parser.add_argument("--task", action="append", help="control: this task only")
    parser.add_argument("--half", choices=("develop", "report"), help="control: tasks of this half only")
    parser.add_argument("--method", action="append", help="control: this method only")
    parser.add_argument("--alone", action="store_true", help="control: measure what the last log of each cell costs")
    parser.add_argument("--workers", type=int, default=usable_cores())
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    if options.table and not options.table.exists():
        parser.error(f"there is no table {options.table}: leave --table out to compute everything")
    begun = time.monotonic()
    os.environ.update(ONE_THREAD if options.alone else ONE_THREAD | KEPT_PROGRAMS)
    known = pd.read_csv(options.table) if options.table else pd.DataFrame()
    jobs = JOBS[options.experiment](options, known)
    print(f"{len(jobs)} logs, {options.workers} processes", flush=True)
    context, tasks_each = multiprocessing.get_context("spawn"), 1 if options.alone else None
    pool = ProcessPoolExecutor(options.workers, mp_context=context, max_tasks_per_child=tasks_each)
    futures = {pool.submit(work): name for name, work in jobs.items()}
    failed = 0
    with options.out.open("a", encoding="utf-8") as out:
        try:
            for future in as_completed(futures, None if options.seconds == float("inf") else options.seconds):
                name, error = futures[future], future.exception()
                failed += error is not None
                line = (
                    {"name": name, "rows": future.result()} if error is None else {"name": name, "error": repr(error)}
                )
                out.write(json.dumps(line) + "\n")
                out.flush()
                print(name, "failed" if error else "done", f"after {time.monotonic() - begun:.0f} s", flush=True)
        except TimeoutError:
            print("the time is over", flush=True)
    # Nobody waits for what is under way.
    for process in multiprocessing.active_children():
        process.kill()
    sys.stdout.flush()
    os._exit(1 if failed else 0)


if __name__ == "__main__":
    main()
