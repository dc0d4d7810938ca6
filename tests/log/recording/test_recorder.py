"""The recorder against steps written down by hand, in every mode of automatic reset, and through a kill."""

import os
import signal
import subprocess
import sys
import time
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import gradientdice as gd
from gradientdice.log.fields import ARRAYS
from problems import known
from rollouts import assert_same_log, roll, steps


class Count(gymnasium.Env):
    """Counts up from a random start; ends above 12 or, in every third episode, is cut after 4 steps."""

    observation_space: Any = gymnasium.spaces.Box(-np.inf, np.inf, (2,), dtype=np.float64)
    action_space: Any = gymnasium.spaces.Discrete(2, start=1)

    def __init__(self, number=0):
        self.number, self.episode = number, -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode += 1
        self.steps, self.at = 0, float(self.np_random.integers(1, 8))
        return self._seen(), {}

    def step(self, action):
        self.steps += 1
        self.at += float(action)
        ended = self.at > 12
        return self._seen(), self.at * 0.5, ended, not ended and self.episode % 3 == 2 and self.steps >= 4, {}

    def _seen(self) -> Any:
        return np.array([self.number, self.at])


def by_hand(envs, seeds, actions):
    """Each environment on its own, reset as soon as it is over, until the actions given to it are used up."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("states", "actions", "rewards", "next_states", "terminated", "truncated", "episodes")
    }
    episodes = 0
    for env, seed, own in zip(envs, seeds, actions, strict=True):
        observation, _ = env.reset(seed=seed)
        over = False
        for number, action in enumerate(own):
            following, reward, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
            cut = truncated or (number == len(own) - 1 and not terminated)
            row = (observation, action - 1, reward, following, terminated, cut, episodes)
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
            if over:
                following, _ = env.reset()
                episodes += 1
            observation = following
        episodes += not over
    arrays: dict[str, Any] = {name: np.array(values) for name, values in columns.items()}
    return gd.Transitions(**arrays)


def in_order(data):
    """Rows by environment and then by episode: episodes are numbered as they end."""
    first = known(data.first_rows)
    order = sorted(range(len(first)), key=lambda e: (data.states[first[e], 0], e))
    rows = np.concatenate([np.flatnonzero(known(data.episodes) == known(data.episodes)[first[e]]) for e in order])
    lengths = [int((known(data.episodes) == known(data.episodes)[first[e]]).sum()) for e in order]
    return rows, np.repeat(np.arange(len(order)), lengths)


class TestOne:
    def test_the_log_is_that_by_hand(self, tmp_path):
        env = gd.Recorder(gymnasium.make("CartPole-v1", max_episode_steps=15), tmp_path / "log", rows_per_part=50)
        for _ in steps(env, 20):
            pass
        env.close()
        data = gd.load(tmp_path / "log")
        assert_same_log(data, roll(gymnasium.make("CartPole-v1", max_episode_steps=15), 20))
        assert len(list((tmp_path / "log").glob("*.parquet"))) > 2
        assert data.notes == ()

    def test_recording_goes_on_in_the_same_folder(self, tmp_path):
        for seed in (0, 100):
            with gd.Recorder(Count(), tmp_path) as env:
                for _ in steps(env, 5, seed):
                    pass
        episodes = known(gd.load(tmp_path).episodes)
        np.testing.assert_array_equal(np.unique(episodes), np.arange(10))

    def test_an_episode_that_was_left_is_cut(self, tmp_path):
        with gd.Recorder(Count(), tmp_path) as env:
            env.reset(seed=0)
            env.step(1)
            env.reset()
            env.step(1)
            env.step(1)
        data = gd.load(tmp_path)
        assert known(data.truncated).tolist() == [True, False, True] and known(data.episodes).tolist() == [0, 1, 1]
        assert not known(data.terminated).any() and data.actions.tolist() == [0, 0, 0], "actions begin at 0"

    def test_log_probabilities_for_all_steps_or_none(self, tmp_path):
        with gd.Recorder(Count(), tmp_path) as env:
            env.reset(seed=0)
            env.step(1, log_prob=-0.5)
            with pytest.raises(gd.InputError, match="for every step"):
                env.step(1)
            env.step(2, log_prob=-1.5)
        assert known(gd.load(tmp_path).behavior_log_probs).tolist() == [-0.5, -1.5]

    def test_dictionaries_and_whole_numbers(self, tmp_path):
        class Parts(Count):
            observation_space = gymnasium.spaces.Dict(
                {"b": gymnasium.spaces.Box(-9, 99, (1,)), "a": gymnasium.spaces.Discrete(3)}
            )

            def _seen(self):
                return {"b": np.array([self.at]), "a": np.int64(self.number)}

        class Places(Count):
            observation_space = gymnasium.spaces.Discrete(99)

            def _seen(self):
                return int(self.at)

        for name, env in (("parts", Parts(2)), ("places", Places())):
            with gd.Recorder(env, tmp_path / name) as recorder:
                for _ in steps(recorder, 3):
                    pass
        assert gd.load(tmp_path / "parts").states[0, 0] == 2
        places = gd.load(tmp_path / "places")
        assert places.states.ndim == 1 and places.states.dtype.kind == "i"

    def test_what_is_refused(self, tmp_path):
        class Pictures(Count):
            observation_space = gymnasium.spaces.Box(0, 255, (8, 8, 3), dtype=np.uint8)

        with pytest.raises(gd.InputError, match="images of shape"):
            gd.Recorder(Pictures(), tmp_path / "pictures")
        with pytest.raises(gd.InputError, match="must be an environment of Gymnasium, not int"):
            gd.Recorder(3, tmp_path / "number")
        first = gd.Recorder(Count(), tmp_path / "shared")
        with pytest.raises(gd.InputError, match="Another recorder writes to"):
            gd.Recorder(Count(), tmp_path / "shared")
        first.close()
        gd.Recorder(Count(), tmp_path / "shared").close()


class TestVector:
    @pytest.mark.parametrize("mode", list(AutoresetMode))
    def test_the_log_is_that_of_each_environment_on_its_own(self, tmp_path, mode):
        taken: list[list[int]] = [[], [], []]
        rng = np.random.default_rng(0)
        made = SyncVectorEnv([lambda n=n: Count(n) for n in range(3)], autoreset_mode=mode)
        envs = gd.Recorder(made, tmp_path)
        envs.reset(seed=[0, 1, 2])
        over = np.zeros(3, dtype=bool)
        for _ in range(60):
            actions = rng.integers(1, 3, size=3)
            if mode is AutoresetMode.DISABLED and over.any():
                envs.reset(options={"reset_mask": over})
            for number in range(3):
                if mode is not AutoresetMode.NEXT_STEP or not over[number]:
                    taken[number].append(int(actions[number]))
            _, _, terminated, truncated, _ = envs.step(actions)
            over = terminated | truncated
        envs.close()
        data = gd.load(tmp_path)
        expected = by_hand([Count(n) for n in range(3)], [0, 1, 2], taken)
        rows, numbers = in_order(data)
        for name in ("states", "actions", "rewards", "next_states", "terminated", "truncated"):
            np.testing.assert_array_equal(getattr(data, name)[rows], getattr(expected, name), err_msg=name)
        np.testing.assert_array_equal(numbers, known(expected.episodes))
        assert known(data.terminated).sum() > 5 and known(data.truncated).sum() > 5

    def test_log_probabilities(self, tmp_path):
        envs = gd.Recorder(SyncVectorEnv([Count, Count]), tmp_path)
        envs.reset(seed=0)
        envs.step(np.array([1, 2]), log_prob=np.array([-0.1, -0.2]))
        with pytest.raises(gd.InputError, match=r"must have shape \(2,\)"):
            envs.step(np.array([1, 2]), log_prob=-0.1)
        envs.close()
        assert sorted(known(gd.load(tmp_path).behavior_log_probs)) == [-0.2, -0.1]


def test_after_a_kill_there_are_whole_episodes(tmp_path):
    code = f"""
import gymnasium, itertools, gradientdice as gd
env = gd.Recorder(gymnasium.make("CartPole-v1", max_episode_steps=15), {str(tmp_path / "log")!r}, rows_per_part=40)
env.action_space.seed(0)
for episode in itertools.count():
    env.reset(seed=episode)
    over = False
    while not over:
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        over = terminated or truncated
"""
    process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ})
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "log").glob("part-*.parquet"))) < 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    data = gd.load(tmp_path / "log")
    count = int(known(data.episodes).max()) + 1
    expected = roll(gymnasium.make("CartPole-v1", max_episode_steps=15), count)
    assert_same_log(data, expected)
    assert set(ARRAYS) >= {"states"} and len(data) == len(expected)
    gd.Recorder(Count(), tmp_path / "log").close()  # the folder is free again
