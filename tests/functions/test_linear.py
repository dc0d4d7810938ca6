"""Features that a user supplies: their mean over actions, and what is refused of them."""

import numpy as np
import pytest

import gradientdice as gd

STATES = np.random.default_rng(0).normal(size=(50, 3))


def features(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    return np.column_stack([np.sin(states), states * actions[:, None]])


def policy(actions: int) -> gd.DiscretePolicy:
    shares = np.random.default_rng(1).dirichlet(np.ones(actions), size=len(STATES))
    return gd.DiscretePolicy(lambda states: shares[: len(states)], actions)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("actions", [1, 2, 5])
def test_the_mean_over_actions(intercept, actions):
    function, target = gd.LinearFeatures(features, intercept), policy(actions)
    shares = target.probabilities_at(STATES)
    each = [function.at(STATES, np.full(len(STATES), action)).values for action in range(actions)]
    expected = sum(shares[:, [action]] * values for action, values in enumerate(each))
    found = function.expected(STATES, target, np.random.default_rng(0)).values
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_function_may_use_its_memory_again(intercept):
    memory = np.empty((len(STATES), 6))

    def in_place(states, actions):
        memory[:] = features(states, actions)
        return memory

    function, target = gd.LinearFeatures(in_place, intercept), policy(3)
    current = function.at(STATES, np.ones(len(STATES))).values
    found = function.expected(STATES, target, np.random.default_rng(0)).values
    plain = gd.LinearFeatures(features, intercept)
    np.testing.assert_array_equal(current, plain.at(STATES, np.ones(len(STATES))).values)
    np.testing.assert_array_equal(found, plain.expected(STATES, target, np.random.default_rng(0)).values)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e150])
def test_a_bad_number_is_refused_at_any_action(bad):
    def broken(states, actions):
        values = features(states, actions)
        values[7, 2] = np.where(actions[7] == 1, bad, 0.0)
        return values

    # Also where the policy never takes that action.
    never = gd.DiscretePolicy(lambda states: np.tile([1.0, 0.0], (len(states), 1)), 2)
    chosen = [policy(2)] if bad == 1e150 else [policy(2), never]
    for target in chosen:
        with pytest.raises(gd.InputError, match=r"feature function's result .*row 7"):
            gd.LinearFeatures(broken).expected(STATES, target, np.random.default_rng(0))
