"""A training process that is killed goes on from its checkpoint to the same bits, wherever it was."""

import pandas as pd
import pytest

from reliability.killed_sweep import MOMENTS, PORTIONS, killed, kills_at_every_portion, sweep


def test_a_killed_sweep_goes_on_bit_for_bit(tmp_path):
    whole = sweep()
    assert killed(tmp_path, PORTIONS, "before"), "it wrote half of the checkpoints of the two trainings"
    assert list(tmp_path.glob("*.safetensors"))
    pd.testing.assert_frame_equal(sweep(tmp_path), whole, check_exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_at_every_portion_changes_no_bit(tmp_path, moment):
    whole = sweep()
    assert PORTIONS <= kills_at_every_portion(tmp_path, moment) <= 2 * PORTIONS
    pd.testing.assert_frame_equal(sweep(tmp_path), whole, check_exact=True)
