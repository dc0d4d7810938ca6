"""Logs for `scale.py`, written in parts by a seeded generator; a log of fewer rows is the first files of a larger one."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np

STATES, MANY_STATES, ACTIONS, FEATURES = 1000, 100_000, 4, 64
# Those that an answer reads.
TABLE_COLUMNS = ["states", "actions", "rewards", "next_states", "terminated", "initial_states"]
VECTOR_COLUMNS = ["states", "actions", "rewards", "next_states", "episodes"]
FILE_ROWS, GROUP_ROWS = 10_000_000, 1_000_000


def table_part(rows: int, seed: int, count: int = STATES):
    """Independent transitions between so many states, four actions, rewards of 0 and 1, one end in 100 steps."""
    import pyarrow as pa

    rng = np.random.default_rng([7, seed])
    states = rng.integers(0, count, size=rows, dtype=np.int32)
    actions = rng.integers(0, ACTIONS, size=rows, dtype=np.int8)
    following = (states + actions * 7 + rng.integers(0, 10, size=rows, dtype=np.int32)) % count
    rewards = (rng.random(rows, dtype=np.float32) < (states % 10) / 10).astype(np.float32)
    return pa.table(
        {
            "states": states,
            "actions": actions,
            "rewards": rewards,
            "next_states": following.astype(np.int32),
            "terminated": rng.random(rows, dtype=np.float32) < 0.01,
            "initial_states": pa.LargeListArray.from_arrays(
                np.minimum(np.arange(rows + 1), 100), pa.array(rng.integers(0, count, size=100, dtype=np.int32))
            ),
        }
    )


def vector_part(rows: int, seed: int):
    """Episodes of 100 rows with states in four dimensions, next states near them, two actions."""
    import pyarrow as pa

    rng = np.random.default_rng([8, seed])
    states = rng.normal(size=(rows, 4)).astype(np.float32)
    actions = rng.integers(0, 2, size=rows, dtype=np.int8)
    following = (0.9 * states + 0.3 * rng.normal(size=(rows, 4))).astype(np.float32)

    def lists(array):
        return pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])

    return pa.table(
        {
            "states": lists(states),
            "actions": actions,
            "rewards": states[:, 0] * actions,
            "next_states": lists(following),
            "episodes": seed * FILE_ROWS // 100 + np.arange(rows) // 100,
        }
    )


MAKERS = {"table": table_part, "states": partial(table_part, count=MANY_STATES), "vectors": vector_part}


def prepared(folder: Path, kind: str, rows: int) -> Path:
    """The folder of a log of so many rows, written if it is not there."""
    import pyarrow.parquet as pq

    shared, own = folder / kind, folder / f"{kind}-{rows}"
    shared.mkdir(parents=True, exist_ok=True)
    own.mkdir(exist_ok=True)
    for number, start in enumerate(range(0, rows, FILE_ROWS)):
        size = min(FILE_ROWS, rows - start)
        path = (shared if size == FILE_ROWS else own) / f"{number:05}.parquet"
        if not path.exists():
            beginning = path.with_suffix(".part")
            pq.write_table(MAKERS[kind](size, number), beginning, row_group_size=GROUP_ROWS)
            beginning.rename(path)
        if path.parent == shared and not (own / path.name).exists():
            os.link(path, own / path.name)
    return own
