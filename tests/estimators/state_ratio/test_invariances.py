"""What a state ratio must not depend on, and what it must."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.log.fields import ARRAYS
from problems import known, random_problem
from reference.state_logs import AVERAGE, EVERY, answer, rollout_with_ends


class TestInvariances:
    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_duplicated_episodes(self, estimator):
        _, target, log = rollout_with_ends(0, 40, 12)
        twice = gd.Transitions(
            **{
                name: np.concatenate([getattr(log, name)] * 2)
                for name in ARRAYS
                if getattr(log, name) is not None and name != "episodes"
            },
            episodes=np.concatenate([known(log.episodes), known(log.episodes) + 1]),
        )
        first, second = answer(estimator, log, target), answer(estimator, twice, target)
        assert second.value == pytest.approx(first.value, abs=1e-10)
        weighted = replace(log, weights=np.full(len(log), 2.0))
        assert answer(estimator, weighted, target).value == pytest.approx(first.value, abs=1e-10)

    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_renamed_states(self, estimator):
        _, target, log = rollout_with_ends(0, 40, 12)
        new = np.array([3, 0, 4, 2, 1])
        renamed = replace(log, states=new[log.states], next_states=new[log.next_states])
        moved = np.empty_like(target)
        moved[new] = target
        first, second = answer(estimator, log, target), answer(estimator, renamed, moved)
        assert second.value == pytest.approx(first.value, abs=1e-10)
        np.testing.assert_allclose(second.influence.rows, first.influence.rows, atol=1e-10)

    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_reward_shift(self, estimator):
        """Exactly c where the value is self-normalised and nothing ends; else c times the ratio's mean."""
        mdp, target, _ = random_problem(3)
        log = mdp.rollout(np.full((5, 2), 0.5), 40, 12, np.random.default_rng(0))
        first = answer(estimator, log, target)
        second = answer(estimator, replace(log, rewards=log.rewards + 2.5), target)
        normalised = getattr(estimator, "self_normalised", True) or estimator.discount == 1
        shift = 2.5 * (1.0 if normalised else first.evidence.mean_ratio)
        assert second.value - first.value == pytest.approx(shift, abs=1e-10)

    @pytest.mark.parametrize("estimator", [*AVERAGE, gd.DiscountedCOPTD(0.9)], ids=repr)
    def test_the_behaviour_itself_has_the_logged_value(self, estimator):
        """On a log in which states and next states are distributed alike, c = 1."""
        mdp, _, data_dist = random_problem(3)
        behavior = data_dist / data_dist.sum(axis=1, keepdims=True)
        log = mdp.rollout(behavior, 1, 500, np.random.default_rng(0))
        log = replace(log, next_states=np.append(log.states[1:], log.states[0]))
        found = answer(estimator, log, behavior)
        assert found.value == pytest.approx(log.rewards.mean(), abs=1e-10)
        np.testing.assert_allclose(found.ratio, 1, atol=1e-9)

    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_kernel_features_that_span_all_states_are_a_table(self, estimator):
        """A kernel map gives the table's answer where it can express any function of the few states."""
        _, target, log = rollout_with_ends(1, 60, 12)
        vectors = np.random.default_rng(0).normal(size=(5, 2))
        table = answer(estimator, log, target)
        elsewhere = replace(
            log,
            states=vectors[log.states],
            next_states=vectors[log.next_states],
            initial_states=vectors[log.start_states],
        )

        def probabilities(states):
            return target[np.argmin(np.sum((states[:, None] - vectors) ** 2, axis=2), axis=1)]

        policy = gd.DiscretePolicy(probabilities, 2)
        for functions in (gd.RandomFourier(60, 0.4), gd.Nystrom(60, 0.4)):
            found = estimator.answer(gd.Problem(elsewhere, policy, functions, 0))
            if isinstance(estimator, gd.BCH):  # whose metric is the kernel's: another least squares with the same limit
                assert found.value == pytest.approx(table.value, abs=0.05)
            else:
                assert found.value == pytest.approx(table.value, abs=1e-6)


def test_state_ratios_that_are_normalised_are_trusted_near_discount_1():
    mdp, target = gd.mdp.boyan_chain("continuing"), np.tile([0.1, 0.9], (13, 1))
    data = mdp.rollout(np.full((13, 2), 0.5), 200, 100, np.random.default_rng(3))
    found = gd.evaluate(data, gd.TabularPolicy(target), gd.GEM(0.999))
    assert (
        known(found.interval)[0] < mdp.value(target, 0.999) < known(found.interval)[1] and str(found.verdict) == "trust"
    )
    assert np.mean(known(found.ratio)) == pytest.approx(1.0)
    plain = gd.evaluate(data, gd.TabularPolicy(target), gd.GEM(0.999, self_normalised=False))
    assert str(plain.verdict) == "do not trust"


def test_features_of_states_that_lose_mass_are_not_trusted():
    """The behaviour never does in one half of the line what the target does there: the ratio's mean shows it."""
    rng = np.random.default_rng(0)
    states = rng.uniform(-1, 1, size=(4000, 1))
    actions = np.where(states[:, 0] > 0.3, 0, rng.integers(0, 2, 4000))
    following = np.clip(states + 0.3 * (2 * actions[:, None] - 1) + 0.1 * rng.normal(size=states.shape), -1, 1)
    rewards = np.where((states[:, 0] > 0.3) & (actions == 1), 5.0, 0.0) + states[:, 0]
    data = gd.Transitions(states, actions, rewards, following, initial_states=states[:50])
    policy = gd.DiscretePolicy(lambda states: np.tile([0.1, 0.9], (len(states), 1)), 2)
    estimator = gd.GEM(0.9, behavior=gd.BehaviorCloning())
    assert str(gd.evaluate(data, policy, estimator, functions=gd.RandomFourier(50)).verdict) != "trust"
