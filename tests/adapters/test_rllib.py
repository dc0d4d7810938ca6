"""RLlib: episodes as it records them, in fragments, and its rows."""

import re
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import gradientdice as gd
from problems import known
from walks import assert_same, by_hand, walk

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]


def test_rllib_episodes(tmp_path):
    pytest.importorskip("msgpack")
    episodes = pytest.importorskip("ray.rllib.env.single_agent_episode")
    import msgpack
    import msgpack_numpy
    import pyarrow as pa
    import pyarrow.parquet as pq

    log, items = walk(), []
    for number in range(12):
        rows = np.flatnonzero(log["episode_id"] == number)
        episode = episodes.SingleAgentEpisode(id_=f"{number:03d}", observations=[log["observations"][rows[0]]])
        for step, row in enumerate(rows):
            if step == 5:  # a fragment ends here, and the next one looks back on it
                items.append(episode.to_numpy().get_state())
                episode = episode.cut(len_lookback_buffer=2)
            episode.add_env_step(
                observation=log["next_observations"][row], action=int(log["actions"][row]),
                reward=float(log["rewards"][row]), terminated=bool(log["terminals"][row]),
                truncated=bool(log["timeouts"][row]), extra_model_outputs={"action_logp": -0.5},
            )  # fmt: skip
        items.append(episode.to_numpy().get_state())
    packed = [msgpack.packb(item, default=msgpack_numpy.encode) for item in items]
    (tmp_path / "run").mkdir()
    pq.write_table(pa.table({"item": pa.array(packed, pa.binary())}), tmp_path / "run" / "part.parquet")
    found = gd.load(tmp_path)  # the folder of a run
    assert_same(found, by_hand(log))
    np.testing.assert_array_equal(found.next_states, log["next_observations"])
    np.testing.assert_array_equal(known(found.truncated), log["timeouts"])
    assert (known(found.behavior_log_probs) == -0.5).all()


def test_rllib_rows(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    log = walk()
    names = ("obs", "actions", "rewards", "new_obs", "terminateds", "truncateds", "eps_id")
    table = {name: list(array) for name, array in zip(names, log.values(), strict=True)}
    table["eps_id"] = [f"{number:032x}" for number in log["episode_id"]]
    pq.write_table(pa.table(table), tmp_path / "log.parquet")
    data = gd.load(tmp_path / "log.parquet")
    policy = gd.policy(always_one, num_actions=3)
    estimate = gd.evaluate(data, policy, discount=0.9, effort="quick")
    assert_same(data, by_hand(log))
    expected = gd.evaluate(by_hand(log), gd.DiscretePolicy(always_one, 3), discount=0.9, effort="quick")
    assert estimate.value == expected.value and estimate.interval == expected.interval


def always_one(states):
    return np.eye(3)[np.ones(len(states), dtype=int)]


def test_the_comparison_page_is_right():
    """What it says of RLlib's estimators runs, and importance sampling of RLlib gives what ours gives."""
    estimators = pytest.importorskip("ray.rllib.offline.estimators")
    from ray.rllib.algorithms.ppo import PPOConfig, PPOTorchPolicy

    log = walk()
    older = {"enable_rl_module_and_learner": False, "enable_env_runner_and_connector_v2": False}
    config = PPOConfig().framework("torch").api_stack(**older).to_dict()
    spaces = gymnasium.spaces
    policy = PPOTorchPolicy(spaces.Box(-np.inf, np.inf, (2,)), spaces.Discrete(3), config)
    names = {
        "observations": log["observations"], "next_observations": log["next_observations"], "actions": log["actions"],
        "rewards": log["rewards"], "terminated": log["terminals"], "truncated": log["timeouts"],
        "episodes": log["episode_id"], "probabilities": np.full(len(log["rewards"]), 1 / 3), "policy": policy,
    }  # fmt: skip
    text = (Path(__file__).parents[2] / "docs/comparison.md").read_text()
    code = re.search(r"### RLlib.*?```python\n(.*?)```", text, re.S)
    exec(known(code)[1].replace("160", "2"), names)

    found = estimators.ImportanceSampling(policy, gamma=0.9).estimate(names["batch"])
    ratio = estimators.ImportanceSampling(policy, gamma=0.9).compute_action_probs(names["batch"]) * 3
    products = np.cumprod(ratio.reshape(12, 8), axis=1)
    by_hand = (products * log["rewards"].reshape(12, 8) * 0.9 ** np.arange(8)).sum(axis=1)
    assert found["v_target"] == pytest.approx(by_hand.mean()) and found["v_target_std"] == pytest.approx(by_hand.std())
