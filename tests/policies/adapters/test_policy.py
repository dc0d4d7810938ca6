"""`gd.policy` on what needs no other framework: tables, functions, Equinox modules, words."""

import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gradientdice as gd

STATES = np.random.default_rng(0).normal(size=(50, 3))


def probabilities(policy: object) -> np.ndarray:
    assert isinstance(policy, gd.DiscretePolicy)
    return policy.probabilities_at(STATES)


def actions(policy: object, seed: int = 0) -> np.ndarray:
    assert isinstance(policy, gd.SamplingPolicy)
    return policy.sample(STATES, np.random.default_rng(seed))


class TestTables:
    def test_probabilities_and_actions(self):
        assert isinstance(gd.policy(np.full((3, 2), 0.5)), gd.TabularPolicy)
        table = gd.policy([1, 0, 2])
        assert isinstance(table, gd.TabularPolicy)
        np.testing.assert_array_equal(table.probabilities, np.eye(3)[[1, 0, 2]])
        wide = gd.policy([1, 0, 2], num_actions=5)
        assert isinstance(wide, gd.TabularPolicy) and wide.num_actions == 5
        greedy = gd.policy([[0.2, 0.8]], deterministic=True)
        assert isinstance(greedy, gd.TabularPolicy)
        np.testing.assert_array_equal(greedy.probabilities, [[0, 1]])

    @pytest.mark.parametrize("wrong", [3, {"a": 1}, object(), gd.TabularPolicy])
    def test_what_is_no_policy(self, wrong):
        with pytest.raises(gd.InputError, match="No policy can be made of"):
            gd.policy(wrong)

    def test_our_own_are_left_as_they_are(self):
        own = gd.TabularPolicy([[1.0]])
        assert gd.policy(own) is own
        with pytest.raises(gd.InputError, match="num_actions= has no meaning"):
            gd.policy(own, num_actions=2)


class TestFunctions:
    def test_probabilities_numbers_and_logits(self):
        right = (STATES[:, 0] > 0).astype(int)
        expected = np.where(right[:, None] == [0, 1], 0.9, 0.1)
        given = gd.policy(lambda s: np.where((s[:, :1] > 0) == [0, 1], 0.9, 0.1), num_actions=2)
        numbers = gd.policy(lambda s: (s[:, 0] > 0).astype(int), num_actions=2)
        logits = gd.policy(
            lambda s: np.log(np.where((s[:, :1] > 0) == [0, 1], 0.9, 0.1)) + 5, num_actions=2, outputs="logits"
        )
        best = gd.policy(lambda s: np.where((s[:, :1] > 0) == [0, 1], 0.9, 0.1), num_actions=2, deterministic=True)
        np.testing.assert_array_equal(probabilities(given), expected)
        np.testing.assert_array_equal(probabilities(numbers), np.eye(2)[right])
        np.testing.assert_allclose(probabilities(logits), expected, rtol=1e-12)
        np.testing.assert_array_equal(probabilities(best), np.eye(2)[right])

    def test_actions_drawn_or_not(self):
        fixed, drawn = gd.policy(lambda s: s[:, :1]), gd.policy(lambda s, rng: s[:, :1] + rng.normal(size=(len(s), 1)))
        assert isinstance(fixed, gd.SamplingPolicy) and isinstance(drawn, gd.SamplingPolicy)
        assert fixed.draws == 1 and drawn.draws is None
        np.testing.assert_array_equal(actions(fixed), STATES[:, :1])
        np.testing.assert_array_equal(actions(drawn, 3), actions(drawn, 3))

    def test_a_normalizer_comes_first(self):
        policy = gd.policy(lambda s: s[:, :1], normalizer=lambda s: 2 * s)
        np.testing.assert_array_equal(actions(policy), 2 * STATES[:, :1])

    def test_an_action_that_is_not_there(self):
        policy = gd.policy(lambda s: np.full(len(s), 2), num_actions=2)
        with pytest.raises(gd.InputError, match="takes action 2 in row 0, and there are 2"):
            probabilities(policy)


class TestEquinox:
    network = eqx.nn.MLP(3, 2, 8, 1, key=jax.random.key(0))

    def test_logits(self):
        policy = gd.policy(self.network, num_actions=2, outputs="logits")
        assert isinstance(policy, gd.DiscretePolicy) and policy.jax
        expected = jax.nn.softmax(jax.vmap(self.network)(jnp.asarray(STATES)), axis=1)
        np.testing.assert_array_equal(probabilities(policy), expected)

    def test_actions(self):
        np.testing.assert_array_equal(actions(gd.policy(self.network)), jax.vmap(self.network)(jnp.asarray(STATES)))

    def test_what_the_numbers_are_must_be_said(self):
        with pytest.raises(gd.InputError, match='outputs="logits" or outputs="probabilities"'):
            probabilities(gd.policy(self.network, num_actions=2))


def test_a_framework_that_is_missing_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "d3rlpy", None)
    algorithm = type("DQN", (), {"__module__": "d3rlpy.algos.qlearning.dqn"})()
    with pytest.raises(gd.InputError, match=r"pip install 'gradientdice\[d3rlpy\]'"):
        gd.policy(algorithm)


def test_no_framework_is_imported_to_recognise_another():
    code = (
        "import sys, gradientdice as gd; gd.policy([[1.0]]); gd.policy(lambda s: s); gd.load({'s': [1], 'a': [0], 'r': [1.0], 'done': [True]})\n"
        "print([name for name in ('jax', 'torch', 'pandas', 'sklearn', 'pyarrow', 'gymnasium', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class TestWords:
    data = gd.load(
        {
            "obs": [0, 1, 0, 1] * 50,
            "next_obs": [1, 0, 1, 0] * 50,
            "action": ["b", "c", "c", "b"] * 50,
            "reward": [1.0, 2.0, 2.0, 1.0] * 50,
        }
    )

    def test_the_log_is_numbered_as_the_policy_is(self):
        prefers = gd.DiscretePolicy(lambda s: np.tile([0.0, 0.25, 0.75], (len(s), 1)), 3, action_names=("a", "b", "c"))
        estimate = gd.evaluate(self.data, prefers, discount=1.0)
        assert estimate.value == pytest.approx(1.75)

    def test_a_word_that_neither_uses_on_continuous_states(self):
        rng = np.random.default_rng(0)
        states, actions = rng.normal(size=(81, 2)), rng.integers(2, size=80)
        log = {"obs": states[:-1], "next_obs": states[1:], "reward": states[:-1, 0]}
        data = gd.load({**log, "action": np.array(["b", "c"])[actions]})
        never_a = gd.DiscretePolicy(lambda s: np.tile([0.0, 0.5, 0.5], (len(s), 1)), 3, action_names=("a", "b", "c"))
        estimate = gd.evaluate(data, never_a, discount=1.0, effort="quick")
        by_hand = gd.Transitions(states[:-1], actions + 1, states[:-1, 0], states[1:])
        assert estimate.value == gd.evaluate(by_hand, never_a, discount=1.0, effort="quick").value

    def test_words_that_the_policy_does_not_know(self):
        other = gd.DiscretePolicy(lambda s: np.tile([0.5, 0.5], (len(s), 1)), 2, action_names=("b", "d"))
        with pytest.raises(gd.InputError, match="has the action 'c', which the policy does not know"):
            gd.evaluate(self.data, other, discount=1.0)
        with pytest.raises(gd.InputError, match="2 words for 3 actions"):
            gd.DiscretePolicy(lambda s: s, 3, action_names=("b", "d"))


def test_a_function_that_returns_words_is_told_to_return_numbers():
    policy = gd.policy(lambda states: np.where(states[:, 0] > 0, "drug", "rest"), num_actions=2)
    assert isinstance(policy, gd.DiscretePolicy)
    with pytest.raises(gd.InputError, match="row 0 is rest, which is no number.*data.action_names"):
        policy.probabilities_at(np.zeros((3, 1)))
