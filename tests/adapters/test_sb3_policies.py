"""Stable-Baselines3 and SBX: the same actions and log-probabilities as the framework's own, to the last digit."""

import gymnasium
import numpy as np
import pytest

import gradientdice as gd

sb3 = pytest.importorskip("stable_baselines3")
import torch  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize  # noqa: E402

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]
CARTPOLE = np.random.default_rng(0).normal(size=(200, 4))
PENDULUM = np.random.default_rng(1).normal(size=(200, 3))
FLOAT32 = 3 * np.finfo(np.float32).eps


@pytest.fixture(scope="module")
def ppo():
    return sb3.PPO("MlpPolicy", "CartPole-v1", n_steps=64, seed=0, device="cpu").learn(128)


def drawn(policy, states, seed):
    """What the policy draws, and what PyTorch's generator is seeded with for it."""
    return policy.sample(states, np.random.default_rng(seed)), int(np.random.default_rng(seed).integers(2**63 - 1))


def test_probabilities_are_those_of_the_distribution(ppo):
    found = gd.policy(ppo).probabilities_at(CARTPOLE)
    for action in range(2):
        tensor = torch.as_tensor(CARTPOLE, dtype=torch.float32)
        with torch.no_grad():
            _, log_probs, _ = ppo.policy.evaluate_actions(tensor, torch.full((200,), action))
        np.testing.assert_allclose(np.log(found[:, action]), log_probs.numpy(), rtol=FLOAT32, atol=FLOAT32)
    best = gd.policy(ppo, deterministic=True).probabilities_at(CARTPOLE)
    np.testing.assert_array_equal(best.argmax(axis=1), ppo.predict(CARTPOLE.astype(np.float32), deterministic=True)[0])
    np.testing.assert_array_equal(gd.policy(ppo.policy).probabilities_at(CARTPOLE), found)


def test_exploration_of_dqn():
    model = sb3.DQN("MlpPolicy", "CartPole-v1", learning_starts=50, seed=0, device="cpu").learn(100)
    model.exploration_rate = 0.2
    found = gd.policy(model).probabilities_at(CARTPOLE)
    best = model.predict(CARTPOLE.astype(np.float32), deterministic=True)[0]
    np.testing.assert_allclose(found[np.arange(200), best], 0.9, rtol=1e-12)
    assert set(np.unique(gd.policy(model, deterministic=True).probabilities_at(CARTPOLE))) == {0.0, 1.0}


@pytest.mark.parametrize("algorithm", ["PPO", "A2C", "SAC", "TD3"])
@pytest.mark.parametrize("deterministic", [True, False])
def test_continuous_actions_are_those_that_predict_gives(algorithm, deterministic):
    """PPO's are clipped to the bounds, SAC's squashed and scaled to them."""
    model = getattr(sb3, algorithm)("MlpPolicy", "Pendulum-v1", seed=0, device="cpu")
    actions, seed = drawn(gd.policy(model, deterministic=deterministic), 3 * PENDULUM, 7)
    torch.manual_seed(seed)
    expected, _ = model.predict((3 * PENDULUM).astype(np.float32), deterministic=deterministic)
    np.testing.assert_array_equal(actions, expected)
    assert np.abs(actions).max() <= 2


def test_the_generator_of_pytorch_is_left_as_it_was():
    model = sb3.PPO("MlpPolicy", "Pendulum-v1", seed=0, device="cpu")
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    policy = gd.policy(model)
    first, _ = drawn(policy, PENDULUM, 3)
    np.testing.assert_array_equal(torch.rand(3), expected)
    np.testing.assert_array_equal(first, drawn(policy, PENDULUM, 3)[0])


def test_observations_are_normalised_as_in_training(tmp_path):
    env = VecNormalize(DummyVecEnv([lambda: gymnasium.make("Pendulum-v1")]), clip_obs=1.5)
    model = sb3.PPO("MlpPolicy", env, n_steps=64, seed=0, device="cpu").learn(256)
    normalised = env.normalize_obs(PENDULUM.astype(np.float32))
    assert np.abs(normalised - PENDULUM).max() > 0.1
    expected, _ = model.predict(normalised, deterministic=True)
    own = gd.policy(model, deterministic=True)
    np.testing.assert_array_equal(drawn(own, PENDULUM, 0)[0], expected)
    model.save(tmp_path / "model")
    env.save(str(tmp_path / "normalise.pkl"))
    loaded = sb3.PPO.load(tmp_path / "model", device="cpu")
    given = gd.policy(
        loaded,
        deterministic=True,
        normalizer=VecNormalize.load(
            str(tmp_path / "normalise.pkl"), DummyVecEnv([lambda: gymnasium.make("Pendulum-v1")])
        ),
    )
    np.testing.assert_array_equal(drawn(given, PENDULUM, 0)[0], expected)


class Parts(gymnasium.Env):
    """Observations in two named parts."""

    observation_space = gymnasium.spaces.Dict(
        {"speed": gymnasium.spaces.Box(-1, 1, (2,)), "place": gymnasium.spaces.Box(-1, 1, (1,))}
    )
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.count += 1
        return self.observation_space.sample(), float(action), self.count % 5 == 0, False, {}


def test_dictionaries_go_into_a_log_and_back():
    model = sb3.DQN("MultiInputPolicy", Parts(), learning_starts=1000, seed=0, device="cpu").learn(100)
    data = gd.load(model.replay_buffer)
    stored = model.replay_buffer.observations
    np.testing.assert_array_equal(data.states[:, 0], stored["place"][:100, 0, 0])
    np.testing.assert_array_equal(data.states[:, 1:], stored["speed"][:100, 0])
    assert data.state_columns == ("place", "speed_0", "speed_1")
    best = gd.policy(model, deterministic=True).probabilities_at(data.states).argmax(axis=1)
    expected, _ = model.predict({name: part[:100, 0] for name, part in stored.items()}, deterministic=True)
    np.testing.assert_array_equal(best, expected)


def test_states_that_do_not_fit(ppo):
    with pytest.raises(gd.InputError, match="takes 4 numbers per state, and the log's states have 3"):
        gd.policy(ppo).probabilities_at(PENDULUM)


def test_images_are_refused():
    class Pictures(Parts):
        observation_space = gymnasium.spaces.Box(0, 255, (36, 36, 3), dtype=np.uint8)

    with pytest.raises(gd.InputError, match="images of shape"):
        gd.policy(sb3.PPO("CnnPolicy", Pictures(), n_steps=8, device="cpu"))


def test_an_answer_in_three_lines(ppo):
    model = sb3.DQN(
        "MlpPolicy", gymnasium.make("CartPole-v1", max_episode_steps=30), learning_starts=10_000, seed=0, device="cpu"
    ).learn(600)
    data = gd.load(model)
    policy = gd.policy(ppo)
    estimate = gd.evaluate(data, policy, discount=0.9, effort="quick")

    buffer = model.replay_buffer
    dones, timeouts = buffer.dones[:600, 0].astype(bool), buffer.timeouts[:600, 0].astype(bool)
    by_hand = gd.Transitions(
        buffer.observations[:600, 0], buffer.actions[:600, 0, 0], buffer.rewards[:600, 0], buffer.next_observations[:600, 0],
        terminated=dones & ~timeouts, truncated=timeouts | ((np.arange(600) == 599) & ~dones),
        episodes=np.append(0, np.cumsum(dones[:-1])),
    )  # fmt: skip
    hand = gd.DiscretePolicy(lambda states: policy.probabilities_at(states), 2)
    expected = gd.evaluate(by_hand, hand, discount=0.9, effort="quick")
    assert estimate.value == expected.value and estimate.interval == expected.interval


class TestSBX:
    @pytest.fixture(autouse=True)
    def library(self):
        self.sbx = pytest.importorskip("sbx")

    def test_probabilities(self):
        model = self.sbx.PPO("MlpPolicy", "CartPole-v1", n_steps=64, seed=0).learn(64)
        found = gd.policy(model).probabilities_at(CARTPOLE)
        state = model.policy.actor_state
        distribution = state.apply_fn(state.params, CARTPOLE.astype(np.float32))
        for action in range(2):
            expected = np.asarray(distribution.log_prob(np.full(200, action)))
            np.testing.assert_allclose(np.log(found[:, action]), expected, rtol=FLOAT32, atol=FLOAT32)
        best = gd.policy(model, deterministic=True).probabilities_at(CARTPOLE)
        np.testing.assert_array_equal(
            best.argmax(axis=1), model.predict(CARTPOLE.astype(np.float32), deterministic=True)[0]
        )

    @pytest.mark.parametrize("algorithm", ["PPO", "SAC", "TD3"])
    def test_continuous_actions(self, algorithm):
        model = getattr(self.sbx, algorithm)("MlpPolicy", "Pendulum-v1", seed=0)
        actions, _ = drawn(gd.policy(model, deterministic=True), PENDULUM, 0)
        np.testing.assert_array_equal(actions, model.predict(PENDULUM.astype(np.float32), deterministic=True)[0])
        sampled = gd.policy(model)
        first, again = (drawn(sampled, PENDULUM, 5)[0] for _ in range(2))
        np.testing.assert_array_equal(first, again)
        assert np.abs(first).max() <= 2
        if algorithm != "TD3":
            assert (first != actions).any() and (first != drawn(sampled, PENDULUM, 6)[0]).any()

    def test_dqn(self):
        model = self.sbx.DQN("MlpPolicy", "CartPole-v1", learning_starts=50, seed=0).learn(60)
        best = gd.policy(model, deterministic=True).probabilities_at(CARTPOLE)
        np.testing.assert_array_equal(
            best.argmax(axis=1), model.predict(CARTPOLE.astype(np.float32), deterministic=True)[0]
        )
