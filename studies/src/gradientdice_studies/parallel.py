"""Parts of an experiment on all cores, each written as soon as it is there."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from gradientdice.base.process import usable_cores
from gradientdice.base.progress import working
from gradientdice_studies.store import ResultStore

# Each process does its linear algebra alone: two threads on each of many cores would wait for one another.
ALONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@contextmanager
def worker_pool(*, fresh: bool = False) -> Iterator[ProcessPoolExecutor]:
    """As many processes as there are cores.

    They are started anew rather than forked: a fork of a process that runs threads, as JAX does, may hang.

    Args:
        fresh: whether each job gets a process of its own.
    """
    before = {name: os.environ.get(name) for name in ALONE}
    os.environ.update(ALONE)
    try:
        pool = ProcessPoolExecutor(
            usable_cores(),
            mp_context=get_context("spawn"),
            # An interrupt is the parent's, which then ends them.
            initializer=signal.signal,
            initargs=(signal.SIGINT, signal.SIG_IGN),
            max_tasks_per_child=1 if fresh else None,
        )
        try:
            yield pool
        except BaseException:
            # Nobody will read what they are at; `shutdown` alone would wait for it.
            for process in list((getattr(pool, "_processes", None) or {}).values()):
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def fill_parts(
    store: ResultStore,
    what: str,
    jobs: Mapping[Path, tuple[Any, ...]],
    work: Callable[..., Any],
    *,
    fresh: bool = False,
) -> None:
    """Does the jobs whose part is missing: `work` on a job's arguments gives rows, for a .json or .parquet file.

    Args:
        store: where the parts are.
        what: is counted, for the progress bar.
        jobs: part -> arguments.
        work: does one job.
        fresh: whether each job gets a process of its own, for jobs that measure what they cost.
    """
    missing = {path: arguments for path, arguments in jobs.items() if not path.exists()}
    if not missing:
        return
    with working(what, len(jobs)) as advance, worker_pool(fresh=fresh) as pool:
        advance(len(jobs) - len(missing))
        futures = {pool.submit(work, *arguments): path for path, arguments in missing.items()}
        for future in as_completed(futures):
            _write(store, futures[future], future.result())
            advance(1)


def _write(store: ResultStore, path: Path, rows: Any) -> None:
    if path.suffix == ".json":
        store.write(path, lambda place: place.write_text(json.dumps(rows)))
        return
    import pandas as pd

    store.write(path, pd.DataFrame(rows).to_parquet)
