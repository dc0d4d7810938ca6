"""Fitted Q evaluation by d3rlpy on logs of the control suite, written to the table that the suite's page reads.

    python benchmarks/d3rlpy_fqe.py --python /path/to/venv/bin/python [--rows 10000] [--first 0] [--logs 2] [TASK …]

d3rlpy pins an old Gymnasium, so that it needs an environment of its own:

    python -m venv VENV && VENV/bin/pip install torch==2.13.0 d3rlpy safetensors jaxtyping lazy_loader

Logs are made here, then the script runs itself there, on one thread for each log. All settings are d3rlpy's defaults.
How many updates to make is not among them: 10,000, as many as ours, or --updates. Its policies are deterministic and
ours are not: an action is drawn wherever it asks for the best one. Discount 1 is left out, since it has none. What is
in the table is not computed again.

Each log has a process of its own, so that what it costs is what it costs a user. With --shared, processes live on,
batches are taken from columns that were stacked once (the same batches: answers are the same to the bit, in two thirds
of the time), and costs are left out.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (ROOT / "src", ROOT / "studies/src")
TABLE = ROOT / "studies/src/gradientdice_studies/control/data/d3rlpy.csv"
KEYS = ("task", "rows", "seed", "discount", "updates")
COLUMNS = (*KEYS, "value", "seconds", "mebibytes", "version")
UPDATES, DRAWS = 10_000, 20
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--python", help="of the environment that has d3rlpy")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the first log")
    parser.add_argument("--logs", type=int, default=2, help="how many")
    parser.add_argument("--discount", type=float, action="append", help="this one alone; all below 1 by default")
    parser.add_argument("--updates", type=int, default=UPDATES)
    parser.add_argument("--workers", type=int, default=1, help="processes side by side")
    parser.add_argument("--shared", action="store_true", help="leave out what answers cost")
    parser.add_argument("--seconds", type=float, help="after which nothing new is begun")
    parser.add_argument("--keep", type=Path, default=ROOT / "results/control/logs", help="where logs are kept")
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        evaluate_all(options)
        return
    if not options.python:
        parser.error("--python is missing: the interpreter of an environment with d3rlpy")
    options.keep.mkdir(parents=True, exist_ok=True)
    with _pool(options.workers) as pool:
        list(pool.map(partial(make_log, options.rows, options.keep), _missing(options)))
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(map(str, (*SOURCES, *_given_path())))}
    subprocess.run([options.python, __file__, "--inside", *sys.argv[1:]], env=environment, check=True)


def _given_path() -> list[str]:
    return [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]


def _pool(workers: int, tasks_each: int | None = None) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, max_tasks_per_child=tasks_each)


def _missing(options: argparse.Namespace) -> dict[tuple[str, int], list[float]]:
    """Log -> discounts that the table does not have; seeds first, so that an interrupted run has some of every task."""
    from gradientdice_studies.control.tasks import TASKS

    known = {tuple(row[name] for name in KEYS) for row in read_rows(options.table)}
    found = {}
    for seed in range(options.first, options.first + options.logs):
        for name in options.tasks or TASKS:
            discounts = [
                discount
                for discount in TASKS[name]().discounts
                if discount < 1
                and discount in (options.discount or [discount])
                and _key(options, name, seed, discount) not in known
            ]
            if discounts:
                found[name, seed] = discounts
    return found


def _key(options: argparse.Namespace, name: str, seed: int, discount: float) -> tuple[str, ...]:
    return name, str(options.rows), str(seed), f"{discount:g}", str(options.updates)


def make_log(rows: int, keep: Path, log: tuple[str, int]) -> None:
    """Makes a log, of a task and a seed, that is not kept yet."""
    from gradientdice_studies.control.run import Cell, stored_log
    from gradientdice_studies.control.tasks import TASKS

    name, seed = log
    stored_log(TASKS[name](), Cell(name, rows, seed), keep)


def evaluate_all(options: argparse.Namespace) -> None:
    """Runs in d3rlpy's environment."""
    deadline = time.monotonic() + options.seconds if options.seconds else float("inf")
    work = partial(answers, options, deadline)
    with _pool(options.workers, None if options.shared else 1) as pool:
        for future in as_completed(
            [pool.submit(work, *log, discounts) for log, discounts in _missing(options).items()]
        ):
            for row in future.result():
                append_row(options.table, row)
                print(*row.values(), flush=True)


def answers(
    options: argparse.Namespace, deadline: float, name: str, seed: int, discounts: Sequence[float]
) -> list[dict]:
    """One log's rows of the table; none after the deadline."""
    import d3rlpy  # pyright: ignore[reportMissingImports]

    from gradientdice_studies.control.memory import peak_memory
    from gradientdice_studies.control.tasks import TASKS

    task, found = TASKS[name](), []
    place = options.keep / f"{name}-{options.rows}-{seed}.npz"
    for discount in discounts:
        if time.monotonic() > deadline:
            break
        prepare = stacked if options.shared else None
        with peak_memory() as memory:
            started = time.perf_counter()
            value = fitted_q(task.target, np.load(place), discount, seed, options.updates, prepare)
            seconds = time.perf_counter() - started
        costs = (None, None) if options.shared else (seconds, memory.mebibytes)
        row = (*_key(options, name, seed, discount), value, *costs, d3rlpy.__version__)
        found.append(dict(zip(COLUMNS, row, strict=True)))
    return found


def stacked(dataset):
    """The same data set, whose batches are rows of columns in place of lists of transitions."""
    from d3rlpy.dataset import TransitionMiniBatch  # pyright: ignore[reportMissingImports]

    buffer, pick = dataset.buffer, dataset.transition_picker
    whole = TransitionMiniBatch.from_transitions([pick(*buffer[row]) for row in range(buffer.transition_count)])
    columns = {name: values for name, values in vars(whole).items() if name != "transitions"}

    def sample(batch_size: int):
        # As many draws, in the same order, as d3rlpy makes one by one.
        rows = np.random.randint(buffer.transition_count, size=batch_size)  # noqa: NPY002
        return TransitionMiniBatch(transitions=(), **{name: values[rows] for name, values in columns.items()})

    dataset.sample_transition_batch = sample
    return dataset


def fitted_q(policy, log, discount: float, seed: int, updates: int = UPDATES, prepare=None) -> float:
    """(1−γ) times the mean of Q at the episodes' starts, at actions of the policy.

    Args:
        policy: what is evaluated.
        log: as a dict of columns.
        discount: below 1.
        seed: of d3rlpy and of the actions.
        updates: how many steps to train.
        prepare: makes another data set of d3rlpy's, if given.
    """
    import d3rlpy  # pyright: ignore[reportMissingImports]
    import torch  # pyright: ignore[reportMissingImports]

    from gradientdice_studies.control.actors import draw

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
        prepare(dataset) if prepare else dataset,
        n_steps=updates,
        n_steps_per_epoch=updates,
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
