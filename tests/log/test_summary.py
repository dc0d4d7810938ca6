"""What a log shows of itself when its name is typed."""

import numpy as np

import gradientdice as gd


def test_a_log_of_whole_numbers():
    data = gd.Transitions([0, 1, 2], [0, 1, 0], [0.0, 1.0, 2.0], [1, 2, 0], weights=[1, 2, 1], initial_states=[0])
    assert repr(data).splitlines() == [
        "Transitions: 3 rows",
        "  states              whole numbers from 0 to 2",
        "  actions             whole numbers from 0 to 1",
        "  rewards             0 to 2, mean 1",
        "  ends                none terminated, none truncated",
        "  initial states      1",
        "  weights             given",
    ]


def test_a_log_of_vectors_and_words():
    steps = {
        "age": [40.0, 41.0, 42.0, 43.0],
        "weight": [70.0] * 4,
        "action": ["rest", "drug", "rest", "drug"],
        "reward": [0.0, 1.0, -0.5, 0.5],
        "done": [False, True, False, True],
        "episode_id": [0, 0, 1, 1],
    }
    lines = repr(gd.load(steps, columns={"states": ["age", "weight"]})).splitlines()
    assert lines[0] == "Transitions: 4 rows in 2 episodes"
    assert lines[1:3] == [
        "  states              vectors of 2 numbers: age · weight",
        "  actions             2 kinds: drug · rest",
    ]
    assert "2 terminated" in lines[4]
    assert sum(line.startswith("  note ") for line in lines) >= 2


def test_a_long_log_is_shown_in_few_lines():
    rows = np.arange(100_000)
    names = tuple(f"word {k}" for k in range(100))
    shown = repr(gd.Transitions(rows % 7, rows % 100, rows * 1.0, rows % 7, episodes=rows // 10, action_names=names))
    assert len(shown) < 400 and "100,000 rows in 10,000 episodes" in shown and "100 kinds: word 0" in shown
    assert max(map(len, shown.splitlines())) < 88 and shown.splitlines()[2].endswith("word 4 · …")
