"""d3rlpy: its datasets and their files against the same rows by hand."""

import numpy as np
import pytest

import gradientdice as gd
from problems import known

d3rlpy = pytest.importorskip("d3rlpy")
pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]


def log(discrete, episodes=10, steps=7):
    rng = np.random.default_rng(0)
    states = rng.normal(size=(episodes, steps, 3)).astype(np.float32)
    number = np.repeat(np.arange(episodes), steps)
    last = np.tile(np.arange(steps) == steps - 1, episodes)
    actions = (
        rng.integers(4, size=episodes * steps)
        if discrete
        else rng.normal(size=(episodes * steps, 2)).astype(np.float32)
    )
    rewards = rng.normal(size=episodes * steps).astype(np.float32)
    return states.reshape(-1, 3), actions, rewards, last & (number % 2 == 0), last & (number % 2 == 1), number


@pytest.mark.parametrize("discrete", [True, False])
def test_datasets_and_their_files(tmp_path, discrete):
    states, actions, rewards, terminals, timeouts, number = log(discrete)
    dataset = d3rlpy.dataset.MDPDataset(
        observations=states,
        actions=actions,
        rewards=rewards,
        terminals=terminals.astype(np.float32),
        timeouts=timeouts.astype(np.float32),
    )
    with open(tmp_path / "log.h5", "w+b") as file:
        dataset.dump(file)
    keep = ~timeouts  # what followed these rows is not stored
    for source in (dataset, tmp_path / "log.h5"):
        found = gd.load(source)
        np.testing.assert_array_equal(found.states, states[keep])
        np.testing.assert_array_equal(found.actions, actions[keep])
        np.testing.assert_array_equal(found.rewards, rewards[keep])
        np.testing.assert_array_equal(known(found.terminated), terminals[keep])
        np.testing.assert_array_equal(known(found.episodes), number[keep])
        going_on = np.flatnonzero(~terminals & ~timeouts)
        np.testing.assert_array_equal(found.next_states[~known(found.terminated)], states[going_on + 1])
        assert known(found.truncated).sum() == timeouts.sum()
        assert any("5 steps at time limits" in note for note in found.notes)


def test_files_of_the_first_version(tmp_path):
    import h5py

    states, actions, rewards, terminals, timeouts, _ = log(True)
    with h5py.File(tmp_path / "old.h5", "w") as file:
        file["observations"], file["actions"], file["rewards"] = states, actions, rewards
        file["terminals"], file["episode_terminals"] = (
            terminals.astype(np.float32),
            (terminals | timeouts).astype(np.float32),
        )
        file["discrete_action"], file["version"] = True, "1.0"
    found = gd.load(tmp_path / "old.h5")
    np.testing.assert_array_equal(found.states, states[~timeouts])
    np.testing.assert_array_equal(known(found.terminated), terminals[~timeouts])
