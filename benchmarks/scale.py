"""Answers from logs beyond memory: rate and memory of scanned logs, beside reading and beside dgemm, in one run.

A seeded generator writes a log in parts. Each measurement runs in a process of its own, whose peak memory is reported.
Sizes are options: `python benchmarks/scale.py --rows 1e6 1e7 --folder /tmp/scale`. The largest that fits a disk of
10 GB is about 1e9 rows of a table, or 1e8 rows of features.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

STATES, ACTIONS, FEATURES = 1000, 4, 64
# Those that an answer reads.
TABLE_COLUMNS = ["states", "actions", "rewards", "next_states", "terminated", "initial_states"]
FILE_ROWS, GROUP_ROWS = 10_000_000, 1_000_000
BATCH_FLOPS_ROWS = 1 << 17


def table_part(rows: int, seed: int):
    """Independent transitions between 1,000 states, four actions, rewards of 0 and 1, one end in 100 steps."""
    import pyarrow as pa

    rng = np.random.default_rng([7, seed])
    states = rng.integers(0, STATES, size=rows, dtype=np.int32)
    actions = rng.integers(0, ACTIONS, size=rows, dtype=np.int8)
    following = (states + actions * 7 + rng.integers(0, 10, size=rows, dtype=np.int32)) % STATES
    rewards = (rng.random(rows, dtype=np.float32) < (states % 10) / 10).astype(np.float32)
    return pa.table(
        {
            "states": states,
            "actions": actions,
            "rewards": rewards,
            "next_states": following.astype(np.int32),
            "terminated": rng.random(rows, dtype=np.float32) < 0.01,
            "initial_states": pa.LargeListArray.from_arrays(
                np.minimum(np.arange(rows + 1), 100), pa.array(rng.integers(0, STATES, size=100, dtype=np.int32))
            ),
        }
    )


def vector_part(rows: int, seed: int):
    """Episodes of 100 steps of an autoregression in four dimensions, two actions."""
    import pyarrow as pa

    rng = np.random.default_rng([8, seed])
    states = rng.normal(size=(rows, 4)).astype(np.float32)
    actions = rng.integers(0, 2, size=rows, dtype=np.int8)
    following = (0.9 * states + 0.3 * rng.normal(size=(rows, 4))).astype(np.float32)
    rewards = states[:, 0] * actions

    def lists(array):
        return pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])

    return pa.table(
        {
            "states": lists(states),
            "actions": actions,
            "rewards": rewards,
            "next_states": lists(following),
            "episodes": seed * FILE_ROWS // 100 + np.arange(rows) // 100,
        }
    )


def write(folder: Path, rows: int, make) -> Path:
    """The log, written in parts; a part that is there already stays."""
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, rows, FILE_ROWS)):
        path = folder / f"{number:05}.parquet"
        if not path.exists():
            pq.write_table(make(min(FILE_ROWS, rows - start), number), path, row_group_size=GROUP_ROWS)
    return folder


def read_and_sum(folder: Path, columns: list[str]) -> None:
    """What pyarrow needs to read these columns and to sum each."""
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    totals = dict.fromkeys(columns, 0.0)
    for batch in ds.dataset(folder).to_batches(columns=columns):
        for name in columns:
            column = batch.column(name)
            if hasattr(column.type, "value_type"):
                column = column.flatten()  # of lists the numbers in them
            totals[name] += float(pc.sum(column).as_py() or 0.0)


def features(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """63 products of cosines with actions, so that with the constant there are 64."""
    frequencies = np.random.default_rng(0).normal(size=(4, 32)).astype(np.float32)
    base = np.cos(states.astype(np.float32) @ frequencies)
    rows = np.empty((len(states), FEATURES - 1))
    rows[:, :32], rows[:, 32:] = base, base[:, :31] * actions[:, None]
    return rows


def evaluate_table(folder: Path) -> float:
    import gradientdice as gd

    policy = gd.TabularPolicy(np.random.default_rng(1).dirichlet(np.ones(ACTIONS), size=STATES))
    return gd.evaluate(gd.scan(folder), policy, discount=0.95, progress=False).value


def evaluate_features(folder: Path) -> float:
    """The seconds that the user's own feature function took of forming the moments."""
    import gradientdice as gd

    spent = 0.0

    def timed(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        nonlocal spent
        begin = time.perf_counter()
        rows = features(states, actions)
        spent += time.perf_counter() - begin
        return rows

    policy = gd.DiscretePolicy(lambda states: np.tile([0.3, 0.7], (len(states), 1)), 2)
    gd.Moments.from_transitions(gd.scan(folder), policy, gd.LinearFeatures(timed))
    return spent


def dgemm_rate() -> float:
    """Rows per second at which the two products of 64 features could be formed, if nothing else were to be done."""
    x = np.random.default_rng(0).normal(size=(BATCH_FLOPS_ROWS, FEATURES))
    y = np.random.default_rng(1).normal(size=(BATCH_FLOPS_ROWS, FEATURES))
    x.T @ y
    begin, times = time.perf_counter(), 20
    for _ in range(times):
        x.T @ x
        x.T @ y
    return times * BATCH_FLOPS_ROWS / (time.perf_counter() - begin)


TASKS = {
    "read table": lambda folder: read_and_sum(folder, TABLE_COLUMNS),
    "table": evaluate_table,
    "read features": lambda folder: read_and_sum(folder, ["states", "actions", "rewards", "next_states", "episodes"]),
    "features": evaluate_features,
    "dgemm": lambda folder: dgemm_rate(),
}


def measure(task: str, folder: Path) -> dict[str, float]:
    """Seconds, peak memory and result of a task, in a process of its own."""
    command = [sys.executable, __file__, "--task", task, "--folder", str(folder)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7, 1e8])
    parser.add_argument("--feature-rows", type=float, nargs="+", default=[1e6, 1e7])
    parser.add_argument("--folder", type=Path, default=Path("scale-logs"))
    parser.add_argument("--task", choices=TASKS)
    options = parser.parse_args()
    if options.task:
        begin = time.perf_counter()
        result = TASKS[options.task](options.folder)
        seconds, peak = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps({"seconds": seconds, "GiB": peak, "result": result}))
        return
    print("| log | rows | million rows / s | of reading and summing | peak GiB |\n|---|---|---|---|---|")
    for rows in map(int, options.rows):
        folder = write(options.folder / f"table-{rows}", rows, table_part)
        read, found = measure("read table", folder), measure("table", folder)
        share = read["seconds"] / found["seconds"]
        rate = rows / found["seconds"] / 1e6
        print(f"| table, {STATES:,} states | {rows:,} | {rate:.1f} | {share:.0%} | {found['GiB']:.2f} |", flush=True)
    rate = measure("dgemm", options.folder)["result"]
    print(
        "\n| log | rows | million rows / s | without the feature function | of dgemm | peak GiB |\n|---|---|---|---|---|---|"
    )
    for rows in map(int, options.feature_rows):
        folder = write(options.folder / f"vectors-{rows}", rows, vector_part)
        found = measure("features", folder)
        all_in, own = rows / found["seconds"], rows / (found["seconds"] - found["result"])
        cells = f"{all_in / 1e6:.2f} | {own / 1e6:.2f} | {own / rate:.0%} | {found['GiB']:.2f}"
        print(f"| moments, {FEATURES} features | {rows:,} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
