"""Whole files or none: faults at every byte, things that are no files, and many writers at a time."""

import os
import stat
import threading
from pathlib import Path

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.base.atomic import write_atomically
from gradientdice.base.checkpoint import load_checkpoint, save_checkpoint
from reliability.faults import KINDS, disk_full_after, full_disks, save_log, save_text


@pytest.mark.parametrize("every", [pytest.param(17, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)])
@pytest.mark.parametrize("suffix", KINDS)
def test_a_full_disk_at_every_byte_leaves_the_old_file(tmp_path, suffix, every):
    """For every k a write that fails after k bytes: one sentence, the old bytes, and nothing else in the folder."""
    outcomes = list(full_disks(tmp_path, suffix, every))
    assert len(outcomes) >= 150 // every and all(outcomes), [at * every for at, fine in enumerate(outcomes) if not fine]


def test_a_failure_is_an_error_of_the_system_too(tmp_path):
    with disk_full_after(3), pytest.raises(OSError, match="File too large"):
        save_text(tmp_path / "file.txt", "long text")


def test_an_interrupted_writer_leaves_nothing(tmp_path):
    path = tmp_path / "file.txt"
    save_text(path, "old")

    def interrupted(place: Path):
        place.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, interrupted)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_only_regular_files_are_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "target").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for name, kind in (("folder", "a folder"), ("pipe", "a device or a pipe"), ("link", "a link")):
        with pytest.raises(gd.InputError, match=f"is {kind}, and only a regular file is replaced"):
            save_text(tmp_path / name, "new")
    assert (tmp_path / "target").read_text() == "mine" and len(list(tmp_path.iterdir())) == 4
    with pytest.raises(gd.InputError, match="a device or a pipe"):
        save_text(Path("/dev/null"), "new")
    with pytest.raises(gd.InputError, match="There is no folder"):
        save_text(tmp_path / "nowhere" / "file", "new")


def test_permissions_stay_and_long_names_work(tmp_path):
    path = tmp_path / ("x" * 251 + ".txt")
    save_text(path, "old")
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~_umask()
    path.chmod(0o600)
    save_text(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and path.read_text() == "new"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_many_threads_leave_whole_files(tmp_path):
    path, failures = tmp_path / "log.npz", []

    def work(number):
        try:
            for _ in range(10):
                save_log(path, [float(number)] * 3)
                assert len(set(gd.load(path).rewards)) == 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and list(tmp_path.iterdir()) == [path]


def test_a_checkpoint_after_faults_is_the_last_good_one(tmp_path):
    path = tmp_path / "state.safetensors"
    save_checkpoint(path, {"a": np.arange(3)}, {"run": 1})
    with disk_full_after(20), pytest.raises(gd.InputError, match="still there"):
        save_checkpoint(path, {"a": np.arange(4)}, {"run": 1})
    found = load_checkpoint(path, {"run": 1})
    assert found is not None and len(found["a"]) == 3
