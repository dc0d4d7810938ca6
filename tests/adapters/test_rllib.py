"""RLlib: episodes as it records them, in fragments, and its rows."""

import numpy as np
import pytest

import gradientdice as gd
from problems import known

pytestmark = pytest.mark.adapters


def walk(episodes=12, steps=8, seed=0):
    """Episodes in one dimension; every third is cut by a time limit, the others end."""
    rng = np.random.default_rng(seed)
    states = rng.normal(size=(episodes, steps + 1, 2)).cumsum(axis=1).astype(np.float32)
    last = np.tile(np.arange(steps) == steps - 1, episodes)
    number = np.repeat(np.arange(episodes), steps)
    return {
        "observations": states[:, :-1].reshape(-1, 2),
        "actions": rng.integers(3, size=episodes * steps),
        "rewards": rng.normal(size=episodes * steps),
        "next_observations": states[:, 1:].reshape(-1, 2),
        "terminals": last & (number % 3 != 0),
        "timeouts": last & (number % 3 == 0),
        "episode_id": number,
    }


def by_hand(log):
    return gd.Transitions(
        log["observations"], log["actions"], log["rewards"], log["next_observations"], terminated=log["terminals"],
        truncated=log["timeouts"], episodes=log["episode_id"],
    )  # fmt: skip


def assert_same(found, expected, rows=slice(None)):
    for name in ("states", "actions", "rewards", "terminated", "episodes"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name)[rows], err_msg=name)
    going_on = ~known(found.terminated)
    np.testing.assert_array_equal(found.next_states[going_on], expected.next_states[rows][going_on])


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
    assert_same(gd.load(tmp_path / "log.parquet"), by_hand(log))
