"""Ctrl-C ends a command soon, and a command that was not interrupted leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradientdice.cli.interrupts import INTERRUPTED, ends_soon_when_interrupted
from gradientdice_studies.store import ResultStore
from problems import linear_system

# Two seconds, and as many again for a machine that is busy with other tests and the type checker.
LONGEST = 4.0

# Heeds Ctrl-C, which a shell makes those that it starts in the background ignore, and becomes what comes after it.
HEEDING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""

# The clean-up takes longer than anyone waits, as a computation outside of Python does.
STUBBORN = """
import sys, time
from gradientdice.cli.interrupts import ends_soon_when_interrupted
told = False
with ends_soon_when_interrupted():
    while True:
        try:
            if not told:
                told = True
                print("ready", flush=True)
            time.sleep(60)
        except KeyboardInterrupt:
            pass
"""


def test_a_process_that_does_not_end_is_ended():
    with subprocess.Popen([sys.executable, "-c", HEEDING, "-c", STUBBORN], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        begun = time.monotonic()
        assert child.wait(timeout=30) == INTERRUPTED
        assert time.monotonic() - begun < LONGEST


def test_the_watch_ends_with_its_block():
    before = threading.active_count()
    with ends_soon_when_interrupted():
        assert threading.active_count() == before + 1
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before
    assert signal.set_wakeup_fd(-1) == -1


# The policy tells when it is asked: from then on the command computes.
POLICY = """
import numpy as np, gradientdice as gd
def half(states):
    print("asked", flush=True)
    return np.full((len(states), 2), 0.5)
policy = gd.DiscretePolicy(half, 2)
"""
LIBRARY = """
import gradientdice as gd, own
gd.evaluate(gd.load("log.npz"), own.policy, discount=0.9)
"""
RANKING = """
import gradientdice as gd, own
gd.rank(gd.load("log.npz"), {"a": own.policy, "b": own.policy}, 0.9)
"""
# The same file many times is a log that takes longer than anyone waits.
SCAN = """
import pyarrow.dataset, gradientdice as gd, own
log = gd.scan(pyarrow.dataset.dataset(["log.parquet"] * 500, format="parquet"))
gd.evaluate(log, own.policy, discount=0.9, functions=gd.RandomFourier(300, 1.0), checkpoint="checkpoint")
"""
EVALUATE = ["-m", "gradientdice", "evaluate", "log.npz", "--policy", "own:policy", "--discount", "0.9"]
RANK = [*EVALUATE[:2], "rank", "log.npz", "--policy", "a=own:policy", "--policy", "b=own:policy", "--discount", "0.9"]
REPRODUCE = ["-m", "gradientdice", "reproduce", "coverage", "--output", "results"]
# With this much to do none of them comes to its end before it is interrupted.
ROWS = 20_000


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param(EVALUATE, INTERRUPTED, id="evaluate"),
        pytest.param(RANK, INTERRUPTED, id="rank"),
        pytest.param(REPRODUCE, INTERRUPTED, id="reproduce"),
        pytest.param(["-c", LIBRARY], -signal.SIGINT, id="library"),
        pytest.param(["-c", RANKING], -signal.SIGINT, id="library-rank", marks=pytest.mark.slow),
        pytest.param(["-c", SCAN], -signal.SIGINT, id="library-scan"),
    ],
)
def test_ctrl_c_ends_real_work_within_two_seconds(tmp_path, arguments, code):
    """As a terminal does it: the signal goes to the whole group of processes, and none of them is left."""
    data, _ = linear_system(0, rows=ROWS)
    for name in ("log.npz", "log.parquet"):
        replace(data, actions=(data.actions[:, 0] > 0).astype(int)).save(tmp_path / name)
    (tmp_path / "own.py").write_text(POLICY)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        [sys.executable, "-c", HEEDING, *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as child:
        if arguments is REPRODUCE:
            _wait_for(lambda: (tmp_path / "results" / "manifest.json").exists(), 60)
        else:
            assert child.stdout is not None and child.stdout.readline() == b"asked\n"
        time.sleep(1.0)
        assert child.poll() is None, "it was still at work"
        begun = time.monotonic()
        os.killpg(child.pid, signal.SIGINT)
        assert child.wait(timeout=30) == code
        _wait_for(lambda: not _alive(child.pid), 10)
        assert time.monotonic() - begun < LONGEST
    if arguments is REPRODUCE:
        ResultStore(tmp_path / "results", **_settings(tmp_path / "results"))  # its parts are whole: it goes on


def _wait_for(happened: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _settings(folder: Path) -> dict[str, Any]:
    manifest = json.loads((folder / "manifest.json").read_text())
    return {"experiment": manifest["experiment"], "settings": manifest["settings"]}
