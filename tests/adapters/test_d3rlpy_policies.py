"""d3rlpy: the same actions as `predict` and `sample_action`, with scalers; a callback that stops training."""

import re
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import gradientdice as gd
from rollouts import roll

d3rlpy = pytest.importorskip("d3rlpy")
import torch  # noqa: E402

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]
STATES = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)


def dataset(discrete):
    rng = np.random.default_rng(1)
    n, last = 200, np.arange(200) % 10 == 9
    actions = rng.integers(3, size=n) if discrete else rng.uniform(-2, 2, size=(n, 2)).astype(np.float32)
    return d3rlpy.dataset.MDPDataset(
        observations=rng.normal(3, 2, size=(n, 3)).astype(np.float32),
        actions=actions,
        rewards=rng.normal(size=n).astype(np.float32),
        terminals=last.astype(np.float32),
    )


def built(config, discrete):
    algo = config.create(device="cpu:0")
    data = dataset(discrete)
    algo.fit(
        data, n_steps=4, n_steps_per_epoch=4, show_progress=False, logger_adapter=d3rlpy.logging.NoopAdapterFactory()
    )
    return algo


def test_discrete_actions_are_those_of_predict():
    scaler = d3rlpy.preprocessing.StandardObservationScaler()
    algo = built(d3rlpy.algos.DQNConfig(batch_size=8, observation_scaler=scaler), True)
    found = gd.policy(algo).probabilities_at(STATES)
    np.testing.assert_array_equal(found, np.eye(3)[algo.predict(STATES)])
    with pytest.raises(gd.InputError, match="has no distribution"):
        gd.policy(algo, deterministic=False)


def test_the_distribution_of_discrete_sac():
    scaler = d3rlpy.preprocessing.StandardObservationScaler()
    algo = built(d3rlpy.algos.DiscreteSACConfig(batch_size=8, observation_scaler=scaler), True)
    found = gd.policy(algo, deterministic=False).probabilities_at(STATES)
    with torch.no_grad():
        expected = algo.impl.modules.policy(algo.observation_scaler.transform(torch.as_tensor(STATES))).probs.numpy()
    np.testing.assert_allclose(found, expected, rtol=5e-7)
    np.testing.assert_array_equal(gd.policy(algo).probabilities_at(STATES).argmax(axis=1), algo.predict(STATES))


def test_continuous_actions_are_scaled_back():
    algo = built(
        d3rlpy.algos.SACConfig(
            batch_size=8, observation_scaler=d3rlpy.preprocessing.StandardObservationScaler(),
            action_scaler=d3rlpy.preprocessing.MinMaxActionScaler(),
        ), False,
    )  # fmt: skip
    greedy = gd.policy(algo).sample(STATES, np.random.default_rng(0))
    np.testing.assert_array_equal(greedy, algo.predict(STATES))
    sampled = gd.policy(algo, deterministic=False).sample(STATES, np.random.default_rng(3))
    torch.manual_seed(int(np.random.default_rng(3).integers(2**63 - 1)))
    np.testing.assert_array_equal(sampled, algo.sample_action(STATES))
    assert np.abs(sampled).max() > 1


def test_one_that_is_not_built():
    with pytest.raises(gd.InputError, match="has not been trained"):
        gd.policy(d3rlpy.algos.DQNConfig().create())


def test_an_answer_in_three_lines():
    algo, log = built(d3rlpy.algos.DQNConfig(batch_size=8), True), dataset(True)
    data = gd.load(log)
    estimate = gd.evaluate(data, gd.policy(algo), discount=0.9, effort="quick")

    rows = [(e.observations, e.actions[:, 0], e.rewards[:, 0]) for e in log.episodes]
    states, actions, rewards = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    last = np.arange(200) % 10 == 9
    following = np.where(last[:, None], states, np.roll(states, -1, axis=0))
    by_hand = gd.Transitions(
        states, actions, rewards, following, terminated=last, truncated=last & ~last, episodes=np.arange(200) // 10
    )
    greedy = gd.DiscretePolicy(lambda s: np.eye(3)[algo.predict(np.asarray(s, dtype=np.float32))], 3)
    expected = gd.evaluate(by_hand, greedy, discount=0.9, effort="quick")
    assert estimate.value == expected.value and estimate.interval == expected.interval


def test_a_callback_ends_the_training():
    log = roll(gymnasium.make("CartPole-v1", max_episode_steps=40), 60)
    learn, held_out = log.split(0.5)
    dataset = d3rlpy.dataset.MDPDataset(
        observations=learn.states,
        actions=learn.actions,
        rewards=learn.rewards,
        terminals=learn.terminated.astype(np.float32),
        timeouts=learn.truncated.astype(np.float32),
    )
    watch = gd.Watch(held_out, discount=0.9, every=20, patience=2)
    algo = d3rlpy.algos.DQNConfig(batch_size=16).create(device="cpu:0")
    with watch.d3rlpy() as callback:
        algo.fit(
            dataset,
            n_steps=2000,
            n_steps_per_epoch=100,
            callback=callback,
            show_progress=False,
            logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
        )
    assert watch.stopped and len(watch.history) < 100
    assert watch.history[-1]["value"] == gd.evaluate(held_out, gd.policy(algo), discount=0.9, effort="quick").value


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "adapters" / "d3rlpy.md"
    names: dict = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.S)), names)
    assert names["estimate"].interval is not None and len(names["watch"].history) >= 3


def test_the_comparison_page_is_right(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = dataset(True)
    episodes = [(e.observations, e.actions, e.rewards) for e in log.episodes]
    observations, actions, rewards = (np.concatenate(parts) for parts in zip(*episodes, strict=True))
    names = {
        "observations": observations, "actions": actions, "rewards": rewards,
        "terminals": (np.arange(len(rewards)) % 10 == 9).astype(np.float32),
        "algo": built(d3rlpy.algos.DQNConfig(batch_size=8), True),
    }  # fmt: skip
    text = (Path(__file__).parents[2] / "docs/comparison.md").read_text()
    code = re.search(r"### d3rlpy.*?```python\n(.*?)```", text, re.S)
    assert code is not None and "n_steps=100_000" in code[1]
    exec(code[1].replace("n_steps=100_000", "n_steps=4, n_steps_per_epoch=2"), names)
    assert names["fqe"].predict_value(observations[:3], actions[:3]).shape == (3,)
