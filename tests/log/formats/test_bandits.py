"""Logs of bandits, which have neither next states nor episodes: every row is an episode of one step, once said so."""

import numpy as np
import pandas as pd
import pytest

import gradientdice as gd

FRAME = pd.DataFrame({"states": [0, 1] * 20, "actions": [0, 1, 1, 0] * 10, "rewards": np.arange(40.0)})
POLICY = gd.TabularPolicy(np.full((2, 2), 0.5))


@pytest.fixture
def path(tmp_path):
    FRAME.to_csv(tmp_path / "log.csv", index=False)
    return tmp_path / "log.csv"


def test_it_must_be_said(path):
    for source in (FRAME, path):
        with pytest.raises(gd.InputError, match="A bandit log has none: columns="):
            gd.load(source)


def test_the_answer_is_that_of_the_arrays(path):
    states, actions, rewards = (FRAME[name].to_numpy() for name in FRAME)
    by_hand = gd.Transitions(states, actions, rewards, None)
    expected = gd.evaluate(by_hand, POLICY, discount=0.0)
    for source in (FRAME, path):
        data = gd.load(source, columns={"next_states": None})
        assert "every row is an episode of one step" in data.notes
        found = gd.evaluate(data, POLICY, discount=0.0)
        assert (found.value, found.interval) == (expected.value, expected.interval)


def test_rows_of_episodes_still_follow_each_other():
    data = gd.load(FRAME.assign(episodes=np.arange(40) // 4), columns={"next_states": None})
    assert len(data) == 30 and data.next_states[0] == 1
