"""What `scale.py` measures, each in a process of its own, so that peak memory is that of one task."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
from scale_logs import ACTIONS, FEATURES, MANY_STATES, STATES, TABLE_COLUMNS, VECTOR_COLUMNS

# The shape of the arrays whose products are the yardstick: a batch of a scanned log.
BATCH_ROWS = 1 << 17
ROUNDS = 10
DISCOUNT = 0.95
TRIVIAL_TASKS = 2000
FIXED = np.random.default_rng(0).normal(size=(BATCH_ROWS, FEATURES - 1))
FREQUENCIES = np.random.default_rng(0).normal(size=(4, FEATURES // 2)).astype(np.float32)


def read_and_sum(folder: Path, columns: list[str]) -> None:
    """What pyarrow needs to read these columns and to sum each, with its default threads."""
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    totals = dict.fromkeys(columns, 0.0)
    for batch in ds.dataset(folder).to_batches(columns=columns):
        for name in columns:
            column = batch.column(name)
            if hasattr(column.type, "value_type"):
                column = column.flatten()  # of lists the numbers in them
            totals[name] += float(pc.sum(column).as_py() or 0.0)


def table_policy(states: int = STATES):
    import gradientdice as gd

    return gd.TabularPolicy(np.random.default_rng(1).dirichlet(np.ones(ACTIONS), size=states))


def coin(states: np.ndarray) -> np.ndarray:
    """Probabilities of two actions."""
    return np.tile([0.3, 0.7], (len(states), 1))


def fixed(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """63 features that cost nothing, so that all the time is the library's; with the constant there are 64."""
    return FIXED[: len(states)]


def cosines(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """63 products of cosines with actions, as a user would write them."""
    base = np.cos(states.astype(np.float32) @ FREQUENCIES)
    rows = np.empty((len(states), FEATURES - 1))
    rows[:, : FEATURES // 2], rows[:, FEATURES // 2 :] = base, base[:, :-1] * actions[:, None]
    return rows


def evaluate_table(log: Any):
    import gradientdice as gd

    return gd.evaluate(log, table_policy(), discount=DISCOUNT, progress=False)


def evaluate_vectors(log: Any):
    """An answer that needs no initial states."""
    import gradientdice as gd

    policy = gd.DiscretePolicy(coin, 2)
    return gd.evaluate(log, policy, discount=1.0, functions=gd.LinearFeatures(cosines), progress=False)


def moments(folder: Path, function) -> None:
    import gradientdice as gd

    gd.Moments.from_transitions(gd.scan(folder), gd.DiscretePolicy(coin, 2), gd.LinearFeatures(function))


def product_seconds() -> np.ndarray:
    """Seconds per row of two products of 64 features, on arrays that are there already.

    First both by dgemm, the rate of the bar; then those that moments need, of which NumPy gives xᵀx to dsyrk, which
    does half of the work.
    """
    x = np.random.default_rng(0).normal(size=(BATCH_ROWS, FEATURES))
    y = np.random.default_rng(1).normal(size=(BATCH_ROWS, FEATURES))

    def dense() -> None:
        for _ in range(ROUNDS):
            x.T @ y
            y.T @ x

    def symmetric() -> None:
        for _ in range(ROUNDS):
            x.T @ x
            x.T @ y

    x.T @ y
    return np.array([timed(dense), timed(symmetric)]) / ROUNDS / BATCH_ROWS


def timed(work) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def read_task(folder: Path, small: Path) -> dict[str, float]:
    columns = TABLE_COLUMNS if "table" in folder.name else VECTOR_COLUMNS
    read_and_sum(small, columns)
    return {"seconds": timed(lambda: read_and_sum(folder, columns))}


def table_task(folder: Path, small: Path) -> dict[str, float]:
    import gradientdice as gd

    evaluate_table(gd.scan(small))  # imports
    return {"seconds": timed(lambda: evaluate_table(gd.scan(folder)))}


def states_task(folder: Path, small: Path) -> dict[str, float]:
    """A table of 100,000 states: its counts, and what they take in memory; then an answer with them."""
    import gradientdice as gd
    from gradientdice.functions import Tabular
    from gradientdice.log.scanning.passes import Run
    from gradientdice.problem.scan.counts import CountPass

    evaluate_table(gd.scan(small))  # imports
    log, work = gd.scan(folder), CountPass(None, DISCOUNT, table=Tabular(MANY_STATES, ACTIONS))
    found: dict[str, Any] = {}

    def count() -> None:
        found["sums"] = work.finished(Run(progress=False).sums(log, work))

    begun = time.process_time()
    counting = timed(count)
    processor = time.process_time() - begun
    cells, peak = len(found.pop("sums")["codes"]), peak_memory()
    policy, begun = table_policy(MANY_STATES), time.process_time()
    seconds = timed(lambda: gd.evaluate(gd.scan(folder), policy, discount=DISCOUNT, progress=False))
    return {
        "seconds": seconds,
        "cpu": time.process_time() - begun,
        "counting_seconds": counting,
        "counting_cpu": processor,
        "cells": cells,
        "counting_GiB": peak,
    }


def peak_memory() -> float:
    """The most memory that this process has had, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def features_task(folder: Path, small: Path) -> dict[str, float]:
    """The products before and after, and the moments between them."""
    moments(small, fixed)
    before, processor = product_seconds(), time.process_time()
    seconds = timed(lambda: moments(folder, fixed))
    processor = time.process_time() - processor
    dense, symmetric = (before + product_seconds()) / 2
    return {"seconds": seconds, "cpu": processor, "dense_row_seconds": dense, "dgemm_row_seconds": symmetric}


def cosines_task(folder: Path, small: Path) -> dict[str, float]:
    moments(small, cosines)
    return {"seconds": timed(lambda: moments(folder, cosines))}


def cluster(workers: int):
    from distributed import LocalCluster

    return LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=50)


def workers_task(folder: Path, small: Path, workers: int) -> dict[str, float]:
    """An answer by so many worker processes, and what a task costs beside its work.

    First they run where the system lets them; then each has one core to itself, as far as there are as many. The client
    and the scheduler, in this process, are not held to a core.
    """
    from distributed import Client

    import gradientdice as gd

    found: dict[str, float] = {}
    with cluster(workers) as local, Client(local) as client:
        client.run(evaluate_table, gd.load(small))  # imports, on every worker
        evaluate_table(gd.scan(small, client=client))
        found["small_seconds"] = timed(lambda: evaluate_table(gd.scan(small, client=client)))
        for way in ("", "pinned_"):
            if way:
                for number, address in enumerate(client.scheduler_info()["workers"]):
                    client.run(pin, number, workers=[address])
            before, here = client.run(time.process_time), time.process_time()
            found[f"{way}seconds"] = timed(lambda: evaluate_table(gd.scan(folder, client=client)))
            found[f"{way}here_cpu"] = time.process_time() - here
            after = client.run(time.process_time)
            found[f"{way}workers_cpu"] = sum(after[one] - before[one] for one in after)
        overhead = timed(lambda: client.gather(client.map(int, range(TRIVIAL_TASKS), pure=False)))
    return {**found, "task_seconds": overhead / TRIVIAL_TASKS}


def pin(number: int) -> None:
    """Holds this process, with its threads that read, to one core."""
    cores = sorted(os.sched_getaffinity(0))
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), [cores[number % len(cores)]])


def parts_task(folder: Path, small: Path) -> dict[str, float]:
    """What a part and a merge cost on one core, and how large the sums are."""
    import gradientdice as gd
    from gradientdice.functions import Tabular
    from gradientdice.problem.scan.counts import CountPass

    log, work = gd.scan(folder), CountPass(None, DISCOUNT, table=Tabular(STATES, ACTIONS))
    rows, spent, sums = 0, 0.0, []
    for part in range(min(4, len(log.parts))):
        rows += sum(group.num_rows for group in log.parts[part].fragment.row_groups)  # pyright: ignore
        begin = time.perf_counter()
        sums.append(work.over(part, log.batches(part, *work.fields, threads=False)))
        spent += time.perf_counter() - begin
    merge = min(timed(lambda: work.merged(*sums[:2])) for _ in range(5))
    size = sum(array.nbytes for array in sums[0].values())
    return {"row_seconds": spent / rows, "merge_seconds": merge, "bytes": size, "parts": len(log.parts)}


def equal_task(folder: Path, small: Path) -> dict[str, Any]:
    """One answer in memory, by scan and by Dask; `folder` has a log of a table or of vectors."""
    from distributed import Client

    import gradientdice as gd

    evaluate = evaluate_table if "table" in folder.name else evaluate_vectors
    found = {"in memory": evaluate(gd.load(folder)), "scan": evaluate(gd.scan(folder))}
    with cluster(2) as local, Client(local) as client:
        found["Dask"] = evaluate(gd.scan(folder, client=client))
    return {name: [one.value, *one.interval] for name, one in found.items()}


TASKS = {
    "read": read_task,
    "table": table_task,
    "states": states_task,
    "features": features_task,
    "cosines": cosines_task,
    "parts": parts_task,
    "equal": equal_task,
    **{
        f"workers {count}": lambda folder, small, count=count: workers_task(folder, small, count)
        for count in (1, 2, 4, 8)
    },
}
