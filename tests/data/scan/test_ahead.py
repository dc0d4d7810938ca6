"""Batches that are read ahead are those of the log; what goes wrong in the other thread goes wrong here."""

import threading

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.data.scan.ahead import ReadAhead
from scans import small_table, written

DATA, _ = small_table(noise=1.0)


@pytest.fixture
def log(tmp_path, monkeypatch) -> gd.ScannedLog:
    monkeypatch.setattr("gradientdice.data.scan.log.PART_ROWS", 1)
    return gd.scan(written(tmp_path / "log", DATA, group=30), batch_rows=13)


def threads() -> int:
    return sum("read-ahead" in thread.name for thread in threading.enumerate())


def test_all_batches_come_part_by_part(log):
    parts = range(2, len(log.parts))
    with ReadAhead(log, ("episodes",), parts) as reading:
        for part in parts:
            both = zip(reading.batches(part, "episodes"), log.batches(part, "episodes"), strict=True)
            for found, expected in both:
                assert found.first == expected.first
                np.testing.assert_array_equal(found.data.rewards, expected.data.rewards)
                np.testing.assert_array_equal(found.data.episodes, expected.data.episodes)
    assert threads() == 0


def test_a_part_need_not_be_used_up(log):
    with ReadAhead(log, (), range(len(log.parts))) as reading:
        next(reading.batches(0))
        found, expected = next(reading.batches(3)), next(log.batches(3))
        np.testing.assert_array_equal(found.data.rewards, expected.data.rewards)


def test_who_leaves_early_leaves_no_thread_behind(log):
    with pytest.raises(RuntimeError), ReadAhead(log, (), range(len(log.parts))) as reading:
        next(reading.batches(0))
        raise RuntimeError
    assert threads() == 0


def test_an_error_comes_after_the_batches_before_it(log, monkeypatch):
    original, wrong = gd.ScannedLog.batches, gd.InputError("a bad row")

    def failing(self, part, *fields, threads=True):
        if part == 1:
            raise wrong
        return original(self, part, *fields, threads=threads)

    monkeypatch.setattr(gd.ScannedLog, "batches", failing)
    with ReadAhead(log, (), range(len(log.parts))) as reading:
        assert list(reading.batches(0))
        with pytest.raises(gd.InputError, match="a bad row"):
            list(reading.batches(1))
    assert threads() == 0
