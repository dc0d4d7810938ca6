"""The batched control problems are Gymnasium's, step by step."""

import gymnasium
import numpy as np
import pytest

from gradientdice.experiments.continuous.environments import ENVIRONMENTS
from gradientdice.policies import SamplingPolicy

NAMES = {"pendulum": "Pendulum-v1", "cartpole": "CartPole-v1", "mountain-car": "MountainCar-v0"}


@pytest.mark.parametrize("name", NAMES)
def test_dynamics_are_gymnasiums(name, rng):
    ours, theirs = ENVIRONMENTS[name](), gymnasium.make(NAMES[name]).unwrapped
    theirs.reset(seed=0)
    states = ours.reset(200, rng)
    policy = ours.target
    continuous = isinstance(policy, SamplingPolicy)
    actions = policy.sample(ours.observe(states), rng) if continuous else rng.integers(0, policy.num_actions, size=200)
    following, rewards, ended = ours.step(states, actions)
    seen = ours.observe(following)
    for k in range(200):
        theirs.state = tuple(states[k]) if name != "pendulum" else states[k].copy()
        if name == "cartpole":
            theirs.steps_beyond_terminated = None
        observation, reward, terminated, *_ = theirs.step(
            actions[k].astype(np.float32) if continuous else int(actions[k])
        )
        np.testing.assert_allclose(seen[k], observation, atol=2e-5)
        assert rewards[k] == pytest.approx(reward, abs=1e-5) and bool(ended[k]) == bool(terminated)


@pytest.mark.parametrize("name", NAMES)
def test_logs_are_whole_episodes(name, rng):
    environment = ENVIRONMENTS[name]()
    data = environment.log(3000, rng)
    assert len(data) == 3000 and (np.diff(data.episodes) >= 0).all()
    inner = np.diff(data.episodes) == 0
    np.testing.assert_array_equal(data.next_states[:-1][inner], data.states[1:][inner])
    last = np.flatnonzero(~inner)
    assert (data.terminated[last] | data.truncated[last]).all()
    assert not (data.terminated | data.truncated)[:-1][inner].any()
