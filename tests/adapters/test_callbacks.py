"""Watching training in the real frameworks: the right looks, an early stop, and no other training than without."""

import gymnasium
import numpy as np
import pytest

import gradientdice as gd
from rollouts import roll

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def data():
    return roll(gymnasium.make("CartPole-v1", max_episode_steps=40), 60)


@pytest.mark.parametrize("library", ["stable_baselines3", "sbx"])
def test_stable_baselines(data, library):
    algorithms = pytest.importorskip(library)

    def train(callback=None, steps=512):
        return algorithms.PPO("MlpPolicy", "CartPole-v1", n_steps=64, seed=0, device="cpu").learn(
            steps, callback=callback
        )

    watch = gd.Watch(data, discount=0.9, every=128)
    watched, alone = train(watch.sb3()), train()
    assert watch.to_frame()["step"].tolist() == [128, 256, 384, 512]
    states = data.states[:50]
    np.testing.assert_array_equal(
        gd.policy(watched).probabilities_at(states), gd.policy(alone).probabilities_at(states)
    )
    last = gd.evaluate(data, gd.policy(train(steps=0)), discount=0.9, effort="quick")
    assert watch.history[0]["value"] != last.value, "the policy has moved"
    stopping = gd.Watch(data, discount=0.9, every=64, patience=1)
    model = train(stopping.sb3(), steps=100_000)
    assert stopping.stopped and model.num_timesteps < 100_000
    values = [look["low"] for look in stopping.history]
    assert values[-1] <= max(values[:-1]) and values[:-1] == sorted(values[:-1])


def test_the_schema_is_a_schema():
    jsonschema = pytest.importorskip("jsonschema")
    schema = gd.Estimate.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    data = gd.load(
        {"obs": [0, 1] * 50, "next_obs": [1, 0] * 50, "action": [0, 1, 1, 0] * 25, "reward": [1.0, 0.0] * 50}
    )
    estimate = gd.evaluate(data, gd.policy([[0.5, 0.5], [0.5, 0.5]]), discount=1.0)
    jsonschema.validate(estimate.to_dict(), schema, cls=jsonschema.Draft202012Validator)
