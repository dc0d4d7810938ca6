"""Shuffled rows: each once in an epoch, the same from memory, from any position on, by seed."""

from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import gradientdice as gd
from gradientdice.log.scanning.shuffled import ShuffledRows

ROWS, GROUP = 230, 20
SIZES = [20] * 11 + [10]


def numbered() -> gd.Transitions:
    """Each row is known by its reward."""
    states = np.random.default_rng(0).normal(size=(ROWS, 2))
    rewards = np.arange(ROWS, dtype=np.float64)
    return gd.Transitions(states, np.arange(ROWS) % 3, rewards, states + 1, terminated=np.arange(ROWS) % 7 == 6)


@pytest.fixture
def log(tmp_path) -> gd.ScannedLog:
    data = numbered()
    columns = {name: getattr(data, name) for name in ("actions", "rewards", "terminated")}
    columns |= {name: list(getattr(data, name)) for name in ("states", "next_states")}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet", row_group_size=GROUP)
    return gd.scan(tmp_path / "log.parquet")


def taken(rows: ShuffledRows, start: int, sizes: list[int]) -> np.ndarray:
    return np.concatenate([piece.rewards for piece in rows.pieces(start, sizes)])


def test_every_row_comes_once_in_an_epoch_in_a_new_order(log):
    rows = ShuffledRows.of_scan(log, seed=3, pool_rows=50)
    assert [unit.rows for unit in rows.units] == SIZES and rows.epoch_rows == ROWS
    found = taken(rows, 0, [17] * 41)[: 3 * ROWS].reshape(3, ROWS)
    assert all(sorted(epoch) == list(range(ROWS)) for epoch in found)
    assert len({tuple(epoch) for epoch in found}) == 3
    assert not np.array_equal(taken(ShuffledRows.of_scan(log, seed=4, pool_rows=50), 0, [ROWS]), found[0])
    # Rows of a pool are mixed: it has three row groups.
    assert len(set(found[0][:GROUP] // GROUP)) == 3


def test_all_fields_stay_together(log):
    data = numbered()
    (piece,) = ShuffledRows.of_scan(log, seed=1, pool_rows=50).pieces(0, [100])
    place = piece.rewards.astype(int)
    for name in ("states", "actions", "next_states", "terminated"):
        np.testing.assert_array_equal(getattr(piece, name), getattr(data, name)[place])


def test_the_same_from_memory(log):
    scanned = ShuffledRows.of_scan(log, seed=5, pool_rows=30)
    memory = ShuffledRows.of_memory(numbered(), SIZES, seed=5, pool_rows=30)
    np.testing.assert_array_equal(taken(scanned, 0, [50] * 8), taken(memory, 0, [50] * 8))


def test_it_goes_on_from_any_position_and_reads_only_what_it_needs(log):
    rows = ShuffledRows.of_scan(log, seed=2, pool_rows=40)
    whole = taken(rows, 0, [600])
    for start in (0, 1, 39, 40, 41, 229, 230, 231, 455):
        np.testing.assert_array_equal(taken(rows, start, [30, 70]), whole[start : start + 100])
    read = []

    class Noted:
        def __init__(self, unit):
            self.unit, self.rows = unit, unit.rows

        def read(self):
            read.append(self)
            return self.unit.read()

    noted = ShuffledRows([Noted(unit) for unit in rows.units], seed=2, pool_rows=40)
    next(iter(islice(noted.pieces(ROWS + 100, [5]), 1)))
    assert len(read) == 2


def test_a_filter_and_other_formats(tmp_path, log):
    few = gd.scan(tmp_path / "log.parquet", filter=ds.field("rewards") < 45)
    rows = ShuffledRows.of_scan(few, pool_rows=10)
    assert [unit.rows for unit in rows.units] == [20, 20, 5]
    assert sorted(taken(rows, 0, [45])) == list(range(45))
    table = gd.scan(pq.read_table(tmp_path / "log.parquet"))
    assert sorted(taken(ShuffledRows.of_scan(table), 0, [ROWS])) == list(range(ROWS))
