"""Minari: a dataset recorded by its own collector, read by name, by folder and as an object."""

import gymnasium
import numpy as np
import pytest

import gradientdice as gd
from rollouts import assert_same_log, roll, steps

minari = pytest.importorskip("minari")
pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]


def environment():
    return gymnasium.make("CartPole-v1", max_episode_steps=25)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("MINARI_DATASETS_PATH", str(tmp_path_factory.mktemp("minari")))
    collector = minari.DataCollector(environment())
    for _ in steps(collector, 40):
        pass
    yield collector.create_dataset(
        "gd/cartpole-v0", algorithm_name="random", author="x", author_email="x@x.x", code_permalink="x", description="x"
    )
    patch.undo()


def test_name_folder_and_object_are_the_log_by_hand(dataset, capsys):
    expected = roll(environment(), 40)
    ended, cut = expected.terminated, expected.truncated
    assert ended is not None and cut is not None and ended.any() and cut.any(), "both kinds of ends are in it"
    folder = minari.storage.local.get_dataset_path("gd/cartpole-v0")
    for source in (dataset, "gd/cartpole-v0", folder):
        found = gd.load(source)
        assert_same_log(found, expected)
        np.testing.assert_array_equal(found.next_states, expected.next_states)  # they are all stored


def test_an_answer_in_three_lines(dataset):
    data = gd.load("gd/cartpole-v0")
    policy = gd.policy(lambda states: (states[:, 2] > 0).astype(int), num_actions=2)
    estimate = gd.evaluate(data, policy, discount=0.9, effort="quick")
    by_hand = gd.evaluate(roll(environment(), 40), policy, discount=0.9, effort="quick")
    assert estimate.value == by_hand.value and estimate.interval == by_hand.interval


def test_a_name_that_is_not_there(dataset):
    with pytest.raises(gd.InputError, match="minari download gd/nothing-v3"):
        gd.load("gd/nothing-v3")
