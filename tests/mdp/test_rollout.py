"""Rollouts that end, are cut, or are paid with noise."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import gradientdice as gd
from problems import known


def leaky(kind):
    """Two states that swap, each step ending with probability 0.2; state 2 is the end."""
    transition = np.array([[[0, 0.8, 0.2]], [[0.8, 0, 0.2]], [[0, 0, 1.0]]])
    parts = np.array([[1.0], [2.0], [0.0]]), np.array([0.5, 0.5, 0.0])
    if kind == "sparse":
        return gd.mdp.SparseMDP(csr_array(transition.reshape(3, 3)), *parts)
    return gd.mdp.TabularMDP(transition, *parts)


@pytest.mark.parametrize("kind", ["tabular", "sparse"])
def test_nothing_is_logged_after_the_end(kind, rng):
    data = leaky(kind).rollout(np.ones((3, 1)), episodes=4000, horizon=6, rng=rng, terminal=2)
    assert (data.states < 2).all()
    assert ((data.next_states == 2) == data.terminated).all()
    assert (np.diff(known(data.episodes)) >= 0).all() and len(np.unique(known(data.episodes))) == 4000
    lengths = np.bincount(known(data.episodes))
    last = np.cumsum(lengths) - 1
    # Every episode ends exactly once, in the environment or at the horizon.
    assert (known(data.terminated) | data.truncated).sum() == 4000 and (known(data.terminated) | data.truncated)[
        last
    ].all()
    assert (lengths[known(data.episodes)[data.truncated]] == 6).all()
    inner = np.setdiff1d(np.arange(len(data)), last)
    assert (data.states[inner + 1] == data.next_states[inner]).all()
    # Lengths are geometric, cut at 6: Pr(cut) = 0.8⁶ and the mean is (1 − 0.8⁶) / 0.2.
    assert known(data.truncated).mean() * len(data) / 4000 == pytest.approx(0.8**6, abs=4 * np.sqrt(0.25 / 4000))
    assert lengths.mean() == pytest.approx((1 - 0.8**6) / 0.2, abs=4 * lengths.std() / np.sqrt(4000))
    assert (data.behavior_log_probs == 0).all()


def test_without_terminal_the_end_is_a_state_like_any_other(rng):
    data = leaky("tabular").rollout(np.ones((3, 1)), episodes=50, horizon=30, rng=rng)
    assert data.terminated is None and len(data) == 1500 and (data.states == 2).any()


def test_noise_has_its_standard_deviation_and_leaves_the_path(rng):
    mdp = leaky("tabular")
    quiet, noisy = (
        mdp.rollout(np.ones((3, 1)), 3000, 10, np.random.default_rng(1), terminal=2, noise=noise) for noise in (0, 0.7)
    )
    np.testing.assert_array_equal(quiet.states, noisy.states)
    added = noisy.rewards - quiet.rewards
    assert added.std() == pytest.approx(0.7, rel=4 / np.sqrt(2 * len(added)))
    assert added.mean() == pytest.approx(0, abs=4 * 0.7 / np.sqrt(len(added)))


@pytest.mark.parametrize(
    ("terminal", "message"),
    [(1, "State 1 is terminal but pays"), (3, "at most 2"), (0, "at least 1"), (1.5, "whole number")],
)
def test_terminal_must_name_states_that_end(terminal, message, rng):
    with pytest.raises(gd.InputError, match=message):
        leaky("tabular").rollout(np.ones((3, 1)), 5, 5, rng, terminal=terminal)


def test_episodes_may_not_start_at_the_end(rng):
    mdp = leaky("tabular")
    mdp = gd.mdp.TabularMDP(np.asarray(mdp.transition), mdp.reward, np.array([0.5, 0.0, 0.5]))
    with pytest.raises(gd.InputError, match="initial gives probability 0.5 to terminal states"):
        mdp.rollout(np.ones((3, 1)), 5, 5, rng, terminal=2)


def test_an_estimator_recovers_the_value_of_a_problem_that_ends(rng):
    """The log's ends and the MDP's absorbing state are the same thing to the library."""
    mdp = gd.mdp.model_fail_mdp()
    target, behavior = gd.mdp.model_fail_policies(mdp)
    data = mdp.rollout(behavior, 5000, 10, rng, terminal=3, noise=0.5)
    estimate = gd.evaluate(data, gd.TabularPolicy(target), gd.GradientDICE(discount=0.9), functions=gd.Tabular(4, 2))
    assert 0 < known(estimate.standard_error) < 0.01
    assert estimate.value == pytest.approx(mdp.value(target, 0.9), abs=4 * known(estimate.standard_error))
