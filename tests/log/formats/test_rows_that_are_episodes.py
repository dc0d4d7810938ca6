"""Rows that are whole episodes go the way of all rows: order, ends, dropped outcomes, damaged cells."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import gradientdice as gd
from problems import known


def lists(**changed) -> pa.Table:
    """Sixty episodes of three to nine steps, one row each."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 10, 60)
    columns = {
        "obs": [rng.integers(0, 4, length).tolist() for length in lengths],
        "action": [rng.integers(0, 2, length).tolist() for length in lengths],
        "reward": [[0.0] * (length - 1) + [float(k % 2)] for k, length in enumerate(lengths)],
    }
    return pa.table({**columns, **{name: make(columns) for name, make in changed.items()}})


def by_row(table: pa.Table) -> pd.DataFrame:
    frame = table.to_pandas()
    parts = [pd.DataFrame({name: row[name] for name in frame.columns}).assign(episode=k) for k, row in frame.iterrows()]
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize("ends", [None, "terminated", "truncated"])
def test_the_same_log_as_with_a_row_per_step(ends):
    table = lists()
    whole, rows = gd.load(table, episode_ends=ends), gd.load(by_row(table), episode_ends=ends)
    for field in ("states", "actions", "rewards", "next_states", "terminated", "truncated", "episodes"):
        np.testing.assert_array_equal(getattr(whole, field), getattr(rows, field))
    assert whole.dropped_rows == rows.dropped_rows and (ends == "terminated") == (whole.dropped_rows is None)


def test_ends_that_are_not_recorded_and_lost_outcomes_are_alarms():
    estimate = gd.evaluate(gd.load(lists()), gd.TabularPolicy([[0.5, 0.5]] * 4), discount=0.9)
    assert estimate.verdict is gd.Verdict.DO_NOT_TRUST
    alarms = {check.name for check in estimate.checks if check.verdict is gd.Verdict.DO_NOT_TRUST}
    assert {"ends that are not recorded", "rewards of rows that were dropped"} <= alarms


def test_words_for_ends_steps_and_next_observations():
    no = gd.load(lists(done=lambda columns: ["no"] * 60))
    assert not known(no.terminated).any()
    assert known(gd.load(lists(done=lambda columns: ["yes"] * 60)).terminated).sum() == 60
    backwards = lists(t=lambda columns: [list(range(len(own)))[::-1] for own in columns["obs"]])
    turned = gd.load(backwards, episode_ends="terminated")
    assert "rows were sorted by episode and t" in turned.notes
    straight = gd.load(lists(), episode_ends="terminated")
    np.testing.assert_array_equal(turned.states[: 1 + 1], straight.states[straight.episodes == 0][::-1][:2])
    longer = gd.load(lists(obs=lambda columns: [[*own, 9] for own in columns["obs"]], done=lambda c: [True] * 60))
    assert known(longer.terminated).sum() == 60 and len(longer) == len(straight)


def test_lists_of_unequal_lengths_and_damaged_cells_are_refused():
    with pytest.raises(gd.InputError, match="action of episode 0 has"):
        gd.load(lists(action=lambda columns: [[0, *own] for own in columns["action"]]))
    with pytest.raises(gd.InputError, match=r"episode 0 ends in row 0 and goes on in row 1"):
        gd.load(lists(done=lambda columns: [[True] * len(own) for own in columns["obs"]]))
    text = [["1", "-", "0"]] + [["1", "0"] * 3] * 2
    table = pa.table(
        {"obs": text, "action": [[0] * len(own) for own in text], "reward": [[0.0] * len(own) for own in text]}
    )
    with pytest.raises(gd.InputError, match="column obs holds numbers, but row 1 has '-'"):
        gd.load(table)
