"""Fitted Q evaluation by d3rlpy on logs of the control suite, written to the table that the suite's page reads.

    python benchmarks/d3rlpy_fqe.py --python /path/to/venv/bin/python [--rows 10000] [--logs 2] [TASK …]

d3rlpy pins an old Gymnasium, so that it needs an environment of its own:

    python -m venv VENV && VENV/bin/pip install torch==2.13.0 d3rlpy safetensors jaxtyping lazy_loader

Logs are made here, then the script runs itself there. All settings are d3rlpy's defaults, with 10,000 updates, as many
as ours. Its policies are deterministic and ours are not: an action is drawn wherever it asks for the best one. Discount
1 is left out, since it has none. What is in the table is not computed again.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src/gradientdice/experiments/control/data/d3rlpy.csv"
COLUMNS = ("task", "rows", "seed", "discount", "value", "seconds", "version")
UPDATES, DRAWS = 10_000, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--python", help="of the environment that has d3rlpy")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--logs", type=int, default=2)
    parser.add_argument("--keep", type=Path, default=ROOT / "results/control/logs", help="where logs are kept")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        evaluate_all(options.tasks, options.rows, options.logs, options.keep)
        return
    if not options.python:
        parser.error("--python is missing: the interpreter of an environment with d3rlpy")
    from gradientdice.experiments.control.run import Cell, stored_log
    from gradientdice.experiments.control.tasks import TASKS

    tasks = options.tasks or list(TASKS)
    options.keep.mkdir(parents=True, exist_ok=True)
    for task in tasks:
        for seed in range(options.logs):
            stored_log(TASKS[task](), Cell(task, options.rows, seed), options.keep)
    arguments = [__file__, "--inside", f"--rows={options.rows}", f"--logs={options.logs}", f"--keep={options.keep}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([options.python, *arguments, *tasks], env=environment, check=True)


def evaluate_all(tasks: list[str], rows: int, logs: int, keep: Path) -> None:
    """Runs in d3rlpy's environment; seeds first, so that an interrupted run has some of every task."""
    import d3rlpy  # pyright: ignore[reportMissingImports]

    from gradientdice.experiments.control.tasks import TASKS

    known = {tuple(row[name] for name in COLUMNS[:4]) for row in read_rows(TABLE)}
    for seed in range(logs):
        for name in tasks:
            task = TASKS[name]()
            for discount in (discount for discount in task.discounts if discount < 1):
                if (name, str(rows), str(seed), f"{discount:g}") in known:
                    continue
                started = time.perf_counter()
                value = fitted_q(task.target, np.load(keep / f"{name}-{rows}-{seed}.npz"), discount, seed)
                row = (name, rows, seed, f"{discount:g}", value, time.perf_counter() - started, d3rlpy.__version__)
                append_row(TABLE, dict(zip(COLUMNS, row, strict=True)))
                print(*row, flush=True)


def fitted_q(policy, log, discount: float, seed: int) -> float:
    """(1−γ) times the mean of Q at the episodes' starts, at actions of the policy; the log as a dict of columns."""
    import d3rlpy  # pyright: ignore[reportMissingImports]
    import torch  # pyright: ignore[reportMissingImports]

    from gradientdice.experiments.control.actors import draw

    d3rlpy.seed(seed)
    rng = np.random.default_rng(seed)
    discrete = log["actions"].ndim == 1

    class Algorithm:
        """What d3rlpy's FQE asks of an algorithm."""

        @property
        def impl(self):
            return self

        def predict_best_action(self, states):
            actions = draw(policy, states.numpy().astype(np.float64), rng)
            return torch.as_tensor(actions, dtype=torch.int64 if discrete else torch.float32)

    actions = log["actions"][:, None] if discrete else log["actions"].astype(np.float32)
    dataset = d3rlpy.dataset.MDPDataset(
        log["states"].astype(np.float32),
        actions,
        log["rewards"].astype(np.float32),
        log["terminated"].astype(np.float32),
        log["truncated"].astype(np.float32),
    )
    kind = d3rlpy.ope.DiscreteFQE if discrete else d3rlpy.ope.FQE
    estimator = kind(algo=Algorithm(), config=d3rlpy.ope.FQEConfig(gamma=discount))
    estimator.fit(
        dataset,
        n_steps=UPDATES,
        n_steps_per_epoch=UPDATES,
        show_progress=False,
        logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
    )
    _, first = np.unique(log["episodes"], return_index=True)
    starts = np.repeat(log["states"][first], DRAWS, axis=0)
    chosen = draw(policy, starts, rng)
    values = estimator.predict_value(starts.astype(np.float32), chosen if discrete else chosen.astype(np.float32))
    return (1 - discount) * float(np.mean(values))


def read_rows(table: Path) -> list[dict[str, str]]:
    """The rows of a table that is there, or none."""
    if not table.exists():
        return []
    with table.open(newline="") as source:
        return list(csv.DictReader(source))


def append_row(table: Path, row: dict) -> None:
    """Adds a row to a table, which has its columns."""
    fresh = not table.exists()
    with table.open("a", newline="") as target:
        writer = csv.DictWriter(target, tuple(row), lineterminator="\n")
        if fresh:
            writer.writeheader()
        writer.writerow(row)


if __name__ == "__main__":
    sys.exit(main())
