"""Answers from logs beyond memory: rate, memory and scaling of scanned logs, as ratios in one run.

A seeded generator writes logs in parts. Each measurement runs in a process of its own, whose peak memory is reported;
what is compared is measured in turn. What is measured goes to `measured.json` beside the logs: a second run measures
only what is not there, or all of some sections anew (`--fresh --only table workers`). At the end the page
docs/results/scale.md is written from that file.

    python benchmarks/scale.py --only table features --rows 1e6 1e7 --folder scale-logs

10⁸ rows of a table take 0.3 GB on disk (0.5 GB with 10⁵ states), and as many rows of features 3.5 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

# Of the process that measures nothing but starts the others, and of those: before NumPy reads them.
ONE_CORE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
SECTIONS = ("table", "states", "features", "memory", "workers", "equal")
SMALL_ROWS, EQUAL_ROWS = 20_000, 1_000_000
WORKERS = (1, 2, 4, 8)


class Measured:
    """Measurements by name, on disk after each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def forget(self, section: str) -> None:
        """Drops those of a section."""
        self.found = {name: value for name, value in self.found.items() if not name.startswith(f"{section}/")}

    def get(self, name: str, measure: Callable[[], dict[str, Any]]) -> None:
        """Measures what is not known."""
        if name not in self.found:
            self.found[name] = measure()
            print(f"{name}: {json.dumps(self.found[name])}", flush=True)
            self.path.write_text(json.dumps(self.found, indent=1))


def run(task: str, folder: Path, small: Path, *, one_core: bool = False) -> dict[str, Any]:
    """A task in a process of its own."""
    command = [sys.executable, __file__, "--task", task, "--log", str(folder), "--small", str(small)]
    environment = {**os.environ, **ONE_CORE} if one_core else dict(os.environ)
    command += ["--one-core"] if one_core else []
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{task}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def run_here(options: argparse.Namespace) -> None:
    """One task, in this process."""
    if options.one_core:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    from scale_tasks import TASKS, peak_memory

    found = TASKS[options.task](options.log, options.small)
    print(json.dumps({**found, "GiB": peak_memory()}))


def repeats(options: argparse.Namespace, rows: int, most: float = 10**8) -> int:
    """Logs of more than `most` rows take long, and vary less."""
    return options.repeats if rows <= most else 1


def measure(measured: Measured, options: argparse.Namespace) -> None:
    from scale_logs import prepared

    folder, only = options.folder, options.only
    small = {kind: prepared(folder, kind, SMALL_ROWS) for kind in ("table", "vectors")}
    for section in only if options.fresh else ():
        measured.forget(section)
    if "table" in only or "memory" in only:
        for rows in map(int, options.rows):
            log = prepared(folder, "table", rows)
            for number in range(repeats(options, rows)):
                for task in ("read", "table"):
                    name = f"table/{rows}/{task}/{number}"
                    measured.get(name, partial(run, task, log, small["table"]))
    if "states" in only:
        for rows in map(int, options.state_rows):
            log = prepared(folder, "states", rows)
            measured.get(f"states/{rows}/states/0", partial(run, "states", log, small["table"]))
    if "features" in only or "memory" in only:
        for rows in map(int, options.feature_rows):
            log = prepared(folder, "vectors", rows)
            for number in range(repeats(options, rows, 10**7)):
                for task, one in (("features", True), ("features", False), ("cosines", False)):
                    name = f"features/{rows}/{task}, {'one core' if one else 'all cores'}/{number}"
                    measured.get(name, partial(run, task, log, small["vectors"], one_core=one))
    if "workers" in only:
        log = prepared(folder, "table", int(options.worker_rows))
        measured.get("workers/rows", lambda: {"rows": options.worker_rows})
        measured.get("workers/parts", partial(run, "parts", log, small["table"], one_core=True))
        for number in range(options.repeats):
            for count in WORKERS if number == 0 else WORKERS[:2]:
                measured.get(f"workers/{count}/{number}", partial(run, f"workers {count}", log, small["table"]))
    if "equal" in only:
        for kind in ("table", "vectors"):
            log = prepared(folder, kind, EQUAL_ROWS)
            measured.get(f"equal/{kind}", partial(run, "equal", log, small[kind], one_core=True))


def machine() -> dict[str, Any]:
    import numpy as np
    import pyarrow as pa

    load = os.getloadavg()[0]
    return {
        "cores": os.cpu_count(),
        "numpy": np.__version__,
        "pyarrow": pa.__version__,
        "load": load,
        "system": platform.system(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS, help="sections to measure")
    parser.add_argument("--fresh", action="store_true", help="measure these sections anew")
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7, 1e8], help="sizes of the table's log")
    parser.add_argument("--state-rows", type=float, nargs="+", default=[1e7, 1e8], help="of the table of 10⁵ states")
    parser.add_argument("--feature-rows", type=float, nargs="+", default=[1e6, 1e7, 1e8])
    parser.add_argument("--repeats", type=int, default=3, help="of what takes seconds")
    parser.add_argument("--worker-rows", type=float, default=1e8)
    parser.add_argument("--folder", type=Path, default=Path("scale-logs"), help="for the logs and for measured.json")
    parser.add_argument("--page", type=Path, default=Path(__file__).parents[1] / "docs" / "results" / "scale.md")
    parser.add_argument("--no-page", action="store_true", help="only measure")
    for name in ("--log", "--small"):
        parser.add_argument(name, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--one-core", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        run_here(options)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    measured = Measured(options.folder / "measured.json")
    measured.found["machine"] = machine()
    measure(measured, options)
    if not options.no_page:
        from scale_page import write_page

        print(write_page(measured.found, options.page))


if __name__ == "__main__":
    main()
