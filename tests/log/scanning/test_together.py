"""Several passes in one give what each gives alone, wherever the log is cut."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.log.scanning.passes import Run
from gradientdice.log.scanning.spill import Spill
from gradientdice.log.scanning.together import Together
from gradientdice.problem.scan.behavior import BehaviorPass
from gradientdice.problem.scan.counts import CountPass
from scans import small_table, with_fields, written

DATA, _ = small_table(noise=1.0)
PASSES = (CountPass(discount=0.9, starts=True, table=gd.Tabular(6, 2)), BehaviorPass(discount=0.5))


def equal(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


@pytest.mark.parametrize("episodes", [True, False])
def test_the_sums_of_each(tmp_path, monkeypatch, episodes):
    monkeypatch.setattr("gradientdice.log.scanning.opening.PART_ROWS", 1)
    data = DATA if episodes else with_fields(DATA, episodes=None)
    log = gd.scan(written(tmp_path, data, cuts=(100, 201), group=30), batch_rows=13)
    together = Together(passes=PASSES)
    sums = together.finished(Run().sums(log, together))
    for number, own in enumerate(PASSES):
        equal(together.of(number, sums), own.finished(Run().sums(log, own)))


def test_episodes_in_no_order_by_way_of_the_disk(tmp_path):
    episodes = np.random.default_rng(0).permutation(40)[DATA.episodes]
    log = gd.scan(written(tmp_path / "log", with_fields(DATA, episodes=episodes), group=50), batch_rows=13)
    together = Together(Spill(tmp_path / "together", len(log.parts)), passes=PASSES)
    sums = together.finished(Run().sums(log, together))
    own = CountPass(Spill(tmp_path / "own", len(log.parts)), 0.9, True, table=gd.Tabular(6, 2))
    equal(together.of(0, sums), own.finished(Run().sums(log, own)))
