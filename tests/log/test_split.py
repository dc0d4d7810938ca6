"""A log in two parts."""

import numpy as np
import pytest

import gradientdice as gd
from problems import known


def log(**more):
    rng = np.random.default_rng(0)
    fields = {
        "episodes": np.repeat(np.arange(20), 5),
        "weights": rng.random(100),
        "terminated": np.arange(100) % 5 == 4,
    }
    return gd.Transitions(np.arange(100), np.arange(100) % 3, rng.normal(size=100), np.arange(1, 101), **fields | more)


def test_every_row_is_in_one_part_and_episodes_stay_whole():
    data = log(behavior_log_probs=-np.arange(100.0))
    first, second = data.split(0.3, seed=4)
    assert len(first) == 30 and len(second) == 70
    assert sorted([*first.states, *second.states]) == list(range(100))
    assert not set(known(first.episodes)) & set(known(second.episodes))
    for part in (first, second):
        rows = part.states
        assert (np.diff(rows) > 0).all(), "in their order"
        for name in ("actions", "rewards", "next_states", "weights", "terminated", "behavior_log_probs"):
            assert np.array_equal(getattr(part, name), getattr(data, name)[rows])


def test_the_seed_chooses():
    data = log()
    assert np.array_equal(data.split(0.5, seed=1)[0].states, data.split(0.5, seed=1)[0].states)
    assert not np.array_equal(data.split(0.5, seed=1)[0].states, data.split(0.5, seed=2)[0].states)


def test_independent_rows_are_split_by_rows_and_initial_states_go_to_both():
    data = log(episodes=None, initial_states=[3, 4])
    first, second = data.split(0.25, by="rows")
    assert len(first) == 25 and len(second) == 75
    assert known(first.initial_states).tolist() == known(second.initial_states).tolist() == [3, 4]


@pytest.mark.parametrize(
    ("data", "arguments", "words"),
    [
        (log(), {"share": 0.0}, "share"),
        (log(), {"share": 1.0}, "empty"),
        (log(), {"share": 0.001}, "empty"),
        (log(), {"share": 0.5, "by": "rows"}, "episodes"),
        (log(), {"share": 0.5, "by": "state"}, "by must be"),
        (log(), {"share": 0.5, "seed": -1}, "seed"),
        (log(episodes=None), {"share": 0.5}, 'by="rows"'),
    ],
)
def test_bad_arguments_are_refused_by_name(data, arguments, words):
    with pytest.raises(gd.InputError, match=words):
        data.split(**arguments)
