"""Episodes in no order go by way of the disk: what is read there is what was written, or it is refused."""

import os

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.log.scanning.spill import BUCKETS, Spill
from reliability.faults import disk_full_after
from scans import small_table, with_fields, written

DATA, TARGET = small_table(noise=1.0)


@pytest.fixture
def log(tmp_path, monkeypatch) -> gd.ScannedLog:
    monkeypatch.setattr("gradientdice.log.scanning.opening.PART_ROWS", 1)
    order = np.random.default_rng(0).permutation(40)
    shuffled = with_fields(DATA, episodes=order[DATA.episodes])
    return gd.scan(written(tmp_path / "log", shuffled, group=80))


def runs(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2 * BUCKETS, count), rng.normal(size=(count, 3))


def test_what_comes_back_is_what_was_written_in_its_order(tmp_path):
    spill, written_runs = Spill(tmp_path, 3), [runs(500), runs(0), runs(300, seed=1)]
    for part, (ids, values) in enumerate(written_runs):
        spill.write(part, ids, values)
    found = [*spill.buckets()]
    ids, values = (np.concatenate(column) for column in zip(*found, strict=True))
    every = [np.concatenate(column) for column in zip(*written_runs, strict=True)]
    for episode in np.unique(every[0]):
        np.testing.assert_array_equal(values[ids == episode], every[1][every[0] == episode])
    assert len(ids) == 800


def test_parts_of_an_earlier_log_are_not_read(tmp_path):
    for part in range(3):
        Spill(tmp_path, 3).write(part, *runs(100, part))
    assert sum(len(ids) for ids, _ in Spill(tmp_path, 2).buckets()) == 200


@pytest.mark.parametrize("name", ["index", "ids", "runs"])
def test_one_flipped_bit_is_refused(tmp_path, name):
    spill = Spill(tmp_path, 1)
    spill.write(0, *runs(30))
    path = tmp_path / f"part-00000000.{name}.npy"
    content = path.read_bytes()
    header = 128  # of the format: a flip there may leave the numbers as they are
    for bit in range(8 * header, 8 * len(content), 61):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(gd.InputError, match=f"{name}.npy is not the whole file"):
            list(spill.buckets())
    path.unlink()
    with pytest.raises(gd.InputError, match=f"{name}.npy"):
        list(spill.buckets())


def test_a_full_disk_is_said_and_the_pass_goes_on_later(log, tmp_path):
    whole, folder = gd.evaluate(log, TARGET, discount=0.9), tmp_path / "checkpoint"
    for size in (0, 150, 2000):
        with disk_full_after(size), pytest.raises(gd.FileError, match="could not be written"):
            gd.evaluate(log, TARGET, discount=0.9, checkpoint=folder)
        with disk_full_after(size), pytest.raises(gd.FileError, match="could not be written"):
            gd.evaluate(log, TARGET, discount=0.9)
    assert not [path for path in folder.rglob("*") if path.name.startswith(".")], "nothing half-written is left"
    found = gd.evaluate(log, TARGET, discount=0.9, checkpoint=folder)
    assert (found.value, found.interval) == (whole.value, whole.interval)


def test_no_place_for_temporary_files(log, monkeypatch):
    monkeypatch.setattr("gradientdice.base.atomic.tempfile.mkdtemp", lambda: os.mkdir("/no such folder/x"))
    with pytest.raises(gd.FileError, match="no place for temporary files .* TMPDIR"):
        gd.evaluate(log, TARGET, discount=0.9)
