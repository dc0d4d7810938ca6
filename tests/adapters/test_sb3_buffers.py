"""Stable-Baselines3's buffers, filled by its own algorithms, against the same steps recorded by hand."""

import gymnasium
import numpy as np
import pytest

import gradientdice as gd
from problems import known

sb3 = pytest.importorskip("stable_baselines3")
from stable_baselines3.common.vec_env import DummyVecEnv  # noqa: E402

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]


class Tape(gymnasium.Wrapper):
    """Writes down what the environment itself was given and gave."""

    def __init__(self, env):
        super().__init__(env)
        self.rows, self.episode = [], -1

    def reset(self, **options):
        self.state, info = self.env.reset(**options)
        self.episode += 1
        return self.state, info

    def step(self, action):
        result = self.env.step(action)
        following, reward, terminated, truncated, _ = result
        self.rows.append((self.state, np.array(action), reward, following, terminated, truncated, self.episode))
        self.state = following
        return result

    def columns(self):
        return [np.array(column) for column in zip(*self.rows, strict=True)]


def make(name, steps, **options):
    return Tape(gymnasium.make(name, max_episode_steps=steps, **options))


def assert_is_the_tape(data, tape, keep=slice(None)):
    states, actions, rewards, following, terminated, truncated, episodes = (column[keep] for column in tape.columns())
    np.testing.assert_array_equal(data.states, states)
    np.testing.assert_allclose(data.actions.reshape(actions.shape), actions, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(data.rewards, rewards, rtol=1e-6)
    np.testing.assert_array_equal(known(data.terminated), terminated)
    np.testing.assert_array_equal(data.next_states[~terminated], following[~terminated])
    over = known(data.terminated) | known(data.truncated)
    assert ((terminated | truncated) <= over).all() and over.sum() <= (terminated | truncated).sum() + 1
    np.testing.assert_array_equal(np.diff(known(data.episodes)) != 0, np.diff(episodes) != 0)


def test_a_replay_buffer_with_ends_and_time_limits():
    tape = make("CartPole-v1", 20)
    model = sb3.DQN("MlpPolicy", tape, learning_starts=300, buffer_size=1000, seed=0, device="cpu")
    model.learn(300)
    assert_is_the_tape(gd.load(model.replay_buffer), tape)
    assert known(gd.load(model).truncated).any() and known(gd.load(model).terminated).any()


def test_continuous_actions_come_back_in_the_environments_units():
    tape = make("Pendulum-v1", 40)
    model = sb3.SAC("MlpPolicy", tape, learning_starts=200, seed=0, device="cpu")
    model.learn(200)
    data = gd.load(model.replay_buffer)
    assert np.abs(data.actions).max() > 1.5, "the torque goes to 2"
    assert_is_the_tape(data, tape)
    assert not known(data.terminated).any() and known(data.truncated).sum() == 5


def test_a_buffer_that_wrote_over_its_beginning():
    tape = make("CartPole-v1", 20)
    model = sb3.DQN("MlpPolicy", tape, learning_starts=1000, buffer_size=250, seed=0, device="cpu")
    model.learn(400)
    data = gd.load(model.replay_buffer)
    episodes = tape.columns()[-1]
    rows = np.arange(len(episodes))
    kept = (rows >= 150) & (episodes > episodes[150])  # whole episodes among the last 250 rows
    assert_is_the_tape(data, tape, kept)
    assert any("beginning was overwritten" in note for note in data.notes)


@pytest.mark.parametrize("saving", [False, True])
def test_several_environments(saving):
    tapes = [make("CartPole-v1", 20) for _ in range(3)]
    options = {"handle_timeout_termination": False}
    model = sb3.DQN("MlpPolicy", DummyVecEnv([lambda tape=tape: tape for tape in tapes]), learning_starts=10_000, seed=0, device="cpu",
                    optimize_memory_usage=saving, replay_buffer_kwargs=options if saving else None)  # fmt: skip
    model.learn(300)
    data = gd.load(model.replay_buffer)
    columns = [np.concatenate(parts) for parts in zip(*(tape.columns() for tape in tapes), strict=True)]
    np.testing.assert_array_equal(data.states, columns[0])
    over = columns[4] | columns[5]
    np.testing.assert_array_equal(data.next_states[~over], columns[3][~over])
    if saving:
        np.testing.assert_array_equal(known(data.terminated), over)
        assert any("does not tell time limits" in note for note in data.notes)
    else:
        np.testing.assert_array_equal(data.next_states, columns[3])
        np.testing.assert_array_equal(known(data.terminated), columns[4])


def test_a_buffer_that_does_not_tell_time_limits_says_so():
    options = {"handle_timeout_termination": False}
    model = sb3.DQN("MlpPolicy", make("CartPole-v1", 20), learning_starts=10_000, seed=0, replay_buffer_kwargs=options)
    model.learn(200)
    assert any("does not tell time limits" in note for note in gd.load(model.replay_buffer).notes)


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
def test_a_rollout_buffer(name):
    tapes = [make(name, 30) for _ in range(2)]
    model = sb3.PPO(
        "MlpPolicy", DummyVecEnv([lambda tape=tape: tape for tape in tapes]), n_steps=128, seed=0, device="cpu"
    )
    seen = {}

    class Look(sb3.common.callbacks.BaseCallback):
        def _on_step(self):
            return True

        def _on_rollout_end(self):
            seen["before"] = gd.load(
                self.model.rollout_buffer, episode_ends="truncated" if name == "Pendulum-v1" else "terminated"
            )

    with pytest.raises(gd.InputError, match="does not say whether its episodes ended"):
        model.learn(256)
        gd.load(model.rollout_buffer)
    for tape in tapes:
        tape.rows.clear()
    model.learn(256, callback=Look())
    after = gd.load(model, episode_ends="truncated" if name == "Pendulum-v1" else "terminated")
    columns = [np.concatenate(parts) for parts in zip(*(tape.columns() for tape in tapes), strict=True)]
    over = columns[4] | columns[5]
    last = np.append(np.diff(np.repeat([0, 1], 128)) != 0, True)
    keep = ~last & ~(over if name == "Pendulum-v1" else np.zeros_like(over)) | (over & (name != "Pendulum-v1") & ~last)
    for data in (seen["before"], after):
        np.testing.assert_array_equal(data.states, columns[0][keep])
        np.testing.assert_allclose(data.actions.reshape(-1), columns[1][keep].reshape(-1), rtol=1e-6)
        going_on = ~over[keep]
        np.testing.assert_array_equal(data.next_states[going_on], columns[3][keep][going_on])
        np.testing.assert_array_equal(known(data.terminated), (over & (name != "Pendulum-v1"))[keep])
    if name == "CartPole-v1":
        assert known(after.behavior_log_probs).max() < 0
    else:
        assert (np.abs(after.actions) <= 2).all()
