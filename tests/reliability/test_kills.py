"""A training process that is killed goes on from its checkpoint to the same bits, wherever it was."""

import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from reliability import killed_sweep
from reliability.killed_sweep import MOMENTS, PORTIONS, sweep


def killed(folder: Path, number: int, moment: str) -> bool:
    """Whether a process that goes on from this folder was killed; if not, it came to its end."""
    child = subprocess.run([sys.executable, killed_sweep.__file__, str(folder), str(number), moment])
    assert child.returncode in (0, -signal.SIGKILL), child
    return child.returncode != 0


def test_a_killed_sweep_goes_on_bit_for_bit(tmp_path):
    whole = sweep()
    assert killed(tmp_path, PORTIONS, "before"), "it wrote half of the checkpoints of the two trainings"
    pd.testing.assert_frame_equal(sweep(tmp_path), whole, check_exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_at_every_portion_changes_no_bit(tmp_path, moment):
    """Each process is killed at one of its first checkpoints, so that every portion of both trainings is one's last."""
    whole, kills = sweep(), 0
    # One that is killed before its first checkpoint has its name would never get further.
    while killed(tmp_path, 1 if moment == "after" else 2, moment):
        kills += 1
        assert list(tmp_path.glob("*.safetensors")), "there is a checkpoint"
        assert kills <= 2 * PORTIONS
    assert kills >= PORTIONS
    pd.testing.assert_frame_equal(sweep(tmp_path), whole, check_exact=True)
