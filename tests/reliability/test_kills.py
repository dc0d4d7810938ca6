"""A process that is killed goes on from its checkpoint to the same bits, wherever it was."""

import pandas as pd
import pytest

from reliability import killed_scan, killed_sweep
from reliability.killing import MOMENTS, Kills, killed


def test_a_killed_sweep_goes_on_bit_for_bit(tmp_path):
    whole = killed_sweep.sweep()
    assert killed(killed_sweep.__file__, tmp_path, killed_sweep.PORTIONS, "before")
    assert list(tmp_path.glob("*.safetensors"))
    pd.testing.assert_frame_equal(killed_sweep.sweep(tmp_path), whole, check_exact=True)


def test_a_killed_scan_goes_on_bit_for_bit(tmp_path):
    whole = killed_scan.answers(tmp_path)
    assert killed(killed_scan.__file__, tmp_path, killed_scan.FILES // 2, "before")
    assert list((tmp_path / "checkpoint").rglob("*.safetensors"))
    assert killed_scan.answers(tmp_path, tmp_path / "checkpoint") == whole


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_at_every_portion_changes_no_bit(tmp_path, moment):
    whole, files = killed_sweep.sweep(), killed_sweep.FILES
    assert files // 2 <= Kills(moment, files).until_the_end(killed_sweep.__file__, tmp_path) <= files
    pd.testing.assert_frame_equal(killed_sweep.sweep(tmp_path), whole, check_exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_at_every_part_of_a_scan_changes_no_bit(tmp_path, moment):
    whole, kills = killed_scan.answers(tmp_path), Kills(moment, killed_scan.KILLS, killed_scan.PORTION)
    assert killed_scan.FILES // 2 <= kills.until_the_end(killed_scan.__file__, tmp_path) <= killed_scan.KILLS
    assert killed_scan.answers(tmp_path, tmp_path / "checkpoint") == whole
