"""Continuous states: the batched control problems are Gymnasium's, step by step; the page from a made-up table."""

from typing import Any

import gymnasium
import numpy as np
import pandas as pd
import pytest

from gradientdice.policies import SamplingPolicy
from gradientdice_studies.continuous.environments import ENVIRONMENTS

NAMES = {"pendulum": "Pendulum-v1", "cartpole": "CartPole-v1", "mountain-car": "MountainCar-v0"}


@pytest.mark.parametrize("name", NAMES)
def test_dynamics_are_gymnasiums(name, rng):
    ours = ENVIRONMENTS[name]()
    theirs: Any = gymnasium.make(NAMES[name]).unwrapped
    theirs.reset(seed=0)
    states = ours.reset(200, rng)
    policy = ours.target
    if isinstance(policy, SamplingPolicy):
        actions = policy.sample(ours.observe(states), rng).astype(np.float32)
    else:
        actions = rng.integers(0, policy.num_actions, size=200)
    following, rewards, ended = ours.step(states, actions)
    seen = ours.observe(following)
    for k in range(200):
        theirs.state = tuple(states[k]) if name != "pendulum" else states[k].copy()
        if name == "cartpole":
            theirs.steps_beyond_terminated = None
        observation, reward, terminated, *_ = theirs.step(actions[k])
        np.testing.assert_allclose(seen[k], observation, atol=2e-5)
        assert rewards[k] == pytest.approx(reward, abs=1e-5) and bool(ended[k]) == bool(terminated)


@pytest.mark.parametrize("name", NAMES)
def test_logs_are_whole_episodes(name, rng):
    environment = ENVIRONMENTS[name]()
    data = environment.log(3000, rng)
    assert data.episodes is not None and data.terminated is not None and data.truncated is not None
    assert len(data) == 3000 and (np.diff(data.episodes) >= 0).all()
    inner = np.diff(data.episodes) == 0
    np.testing.assert_array_equal(data.next_states[:-1][inner], data.states[1:][inner])
    last = np.flatnonzero(~inner)
    assert (data.terminated[last] | data.truncated[last]).all()
    assert not (data.terminated | data.truncated)[:-1][inner].any()


@pytest.fixture
def candidates():
    """Four logs with three candidates each; the first is chosen, and the truth is outside one of the intervals."""
    known = {"problem": "cartpole", "discount": 0.9, "truth": 1.1, "truth_error": 0.01, "behavior": 3.1, "high": 1.3}
    return pd.DataFrame(
        [
            {
                **known,
                "replication": log,
                "value": value,
                "standard_error": 0.1 + number,
                "loss": loss,
                "flow_residual": -loss,
                "chosen": number == 0,
                "low": 0.9 if log else 1.2,
            }
            for log in range(4)
            for number, (value, loss) in enumerate([(1.0, 0.1), (2.0, 0.5), (1.5, 0.05)])
        ]
    )


def test_the_page_counts_what_is_inside_and_ranks_the_criteria(page, candidates):
    text = page("continuous", candidates)
    assert "3 of 4" in text and "| 5% |" in text, "an error of 0.1 in a gap of 2"
    assert "| smallest Bellman loss | 4.00 |" in text and "| smallest flow residual | 9.00 |" in text
    assert "| smallest flow residual in size | 4.00 |" in text and "| smallest standard error | 1.00 |" in text
    assert "standard error and estimated bias together | 1.00 |" in text and "the share is not yet known" in text


def test_later_logs_are_also_counted_alone(page, candidates):
    text = " ".join(page("continuous", candidates.assign(replication=candidates["replication"] + 23)).split())
    assert "inside 75% of the intervals" in text and "the share is 100% of 2." in text
