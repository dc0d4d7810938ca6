"""COP-TD, discounted COP-TD, BCH and GEM: each has its own fixed point, exactly, and that of a plain NumPy version."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.functions.rows import BlockRows
from problems import known, random_problem
from reference import state_ratios as reference
from reference.state_logs import (
    AVERAGE,
    DISCOUNTED,
    answer,
    every_trajectory,
    every_transition,
    rollout_with_ends,
    terminating,
    with_starts,
)


class TestPopulation:
    """Each estimator's own fixed point, exactly, on the whole population."""

    @pytest.mark.parametrize("estimator", AVERAGE, ids=repr)
    @pytest.mark.parametrize("seed", range(3))
    def test_average_reward(self, estimator, seed):
        mdp, target, data_dist = random_problem(seed)
        found = answer(estimator, every_transition(mdp, data_dist), target)
        assert found.value == pytest.approx(mdp.value(target, 1.0), abs=1e-12)
        assert found.evidence.mean_ratio == pytest.approx(1, abs=1e-12)

    @pytest.mark.parametrize("estimator", AVERAGE, ids=repr)
    def test_average_reward_of_boyans_chain(self, estimator):
        mdp, target = gd.mdp.boyan_chain("continuing"), np.tile([0.1, 0.9], (13, 1))
        data = every_transition(mdp, np.full((13, 2), 1 / 26), np.arange(13))
        assert answer(estimator, data, target).value == pytest.approx(mdp.value(target, 1.0), abs=1e-11)

    @pytest.mark.parametrize("estimator", AVERAGE, ids=repr)
    @pytest.mark.parametrize("seed", range(3))
    def test_average_reward_with_restarts(self, estimator, seed):
        absorbed, restarted, target, data_dist, starts = terminating(seed)
        found = answer(estimator, every_transition(absorbed, data_dist, starts, terminal=4), target)
        assert found.value == pytest.approx(restarted.value(target[:-1], 1.0), abs=1e-12)

    @pytest.mark.parametrize("estimator", DISCOUNTED, ids=repr)
    @pytest.mark.parametrize("discount", [0.0, 0.5, 0.9, 0.99])
    @pytest.mark.parametrize("seed", range(3))
    def test_discounted(self, estimator, discount, seed):
        """GEM starts from the initial states, discounted COP-TD from the log's."""
        mdp, target, data_dist = random_problem(seed)
        mdp = with_starts(mdp)
        data = every_transition(mdp, data_dist)
        own = gd.mdp.TabularMDP(mdp.transition, mdp.reward, data_dist.sum(axis=1))
        chain = own if isinstance(estimator, gd.DiscountedCOPTD) else mdp
        found = answer(replace(estimator, discount=discount), data, target)
        assert found.value == pytest.approx(chain.value(target, discount), abs=1e-12)
        pairs = data.states * 2 + data.actions
        ratio = chain.ratio(target, discount, data_dist).ravel()[pairs]
        np.testing.assert_allclose(known(found.ratio), ratio, atol=1e-10)

    @pytest.mark.parametrize("estimator", DISCOUNTED, ids=repr)
    @pytest.mark.parametrize("seed", range(3))
    def test_discounted_with_ends(self, estimator, seed):
        absorbed, _, target, data_dist, starts = terminating(seed)
        own = gd.mdp.TabularMDP(absorbed.transition, absorbed.reward, data_dist.sum(axis=1))
        chain = own if isinstance(estimator, gd.DiscountedCOPTD) else absorbed
        found = answer(estimator, every_transition(absorbed, data_dist, starts, terminal=4), target)
        assert found.value == pytest.approx(chain.value(target, 0.9), abs=1e-12)
        assert found.evidence.mean_ratio == pytest.approx(1, abs=1e-12)

    @pytest.mark.parametrize("discount", [0.0, 0.5, 0.9, 0.99])
    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("terminal", [None, 2])
    def test_bch_on_every_trajectory(self, discount, seed, terminal):
        """Trajectories of only three steps, at which γᵗ is far from 0: cut trajectories do no harm."""
        mdp, target, data_dist = random_problem(seed, states=3)
        transition, reward = np.array(mdp.transition), np.array(mdp.reward)
        if terminal is not None:
            transition[terminal], reward[terminal] = np.eye(3)[terminal], 0.0
        mdp = gd.mdp.TabularMDP(transition, reward, [0.625, 0.375, 0.0] if terminal else [0.5, 0.25, 0.25])
        behavior = data_dist / data_dist.sum(axis=1, keepdims=True)
        data = every_trajectory(mdp, behavior, 3, terminal)
        found = answer(gd.BCH(discount), data, target)
        assert found.value == pytest.approx(mdp.value(target, discount), abs=1e-11)
        assert found.evidence.mean_ratio == pytest.approx(1, abs=1e-11)
        assert np.average(found.ratio * data.rewards, weights=data.weights) == pytest.approx(found.value, abs=1e-12)

    @pytest.mark.parametrize("seed", range(3))
    def test_bch_ratio_is_against_the_discounted_visitation(self, seed):
        mdp, target, data_dist = random_problem(seed, states=3)
        mdp = gd.mdp.TabularMDP(mdp.transition, mdp.reward, [0.5, 0.25, 0.25])
        behavior = data_dist / data_dist.sum(axis=1, keepdims=True)
        data = every_trajectory(mdp, behavior, 3)
        step = np.tile(np.arange(3), len(data) // 3)
        logged = np.bincount(data.states, weights=known(data.weights) * 0.8**step)
        visits = mdp.occupancy(target, 0.8).sum(axis=1) / (logged / logged.sum())
        np.testing.assert_allclose(known(answer(gd.BCH(0.8), data, target).solution).ratio_params, visits, rtol=1e-10)


class TestReference:
    """On logs of which the published forms are right, they are the library's."""

    @staticmethod
    def closed(seed, episodes=60):
        """Episodes that all end: with restarts, states and next states are distributed alike."""
        _, target, log = rollout_with_ends(seed, episodes, 400)
        last = {episode: row for row, episode in enumerate(known(log.episodes))}
        assert known(log.terminated)[list(last.values())].all()
        starts = log.start_states
        at_end = [(state, 1 / len(known(starts))) for state in known(starts)]
        following = [
            at_end if end else [(t, 1.0)] for t, end in zip(log.next_states, known(log.terminated), strict=True)
        ]
        importance = target[log.states, log.actions] / 0.5
        return log, target, importance, following

    @pytest.mark.parametrize("seed", range(3))
    def test_cop_td(self, seed):
        log, target, importance, following = self.closed(seed)
        value, c = reference.cop_td(log.states, importance, log.rewards, following, 4)
        found = answer(gd.COPTD(1.0), log, target)
        assert found.value == pytest.approx(value, abs=1e-10)
        np.testing.assert_allclose(known(found.solution).ratio_params[:4], c, atol=1e-10)

    @pytest.mark.parametrize("seed", range(3))
    def test_bch_average(self, seed):
        mdp, target, _ = random_problem(seed)
        log = mdp.rollout(np.full((5, 2), 0.5), 1, 300, np.random.default_rng(seed))
        nexts = np.append(log.states[1:], log.states[0])  # a circle
        log = replace(log, next_states=nexts)
        importance = target[log.states, log.actions] / 0.5
        value, w = reference.bch(log.states, importance, log.rewards, nexts, np.ones(300), [0], 5, 1.0)
        found = answer(gd.BCH(1.0), log, target)
        assert found.value == pytest.approx(value, abs=1e-10)
        np.testing.assert_allclose(known(found.solution).ratio_params, w, atol=1e-10)

    @pytest.mark.parametrize("seed", range(3))
    def test_bch_discounted_with_trajectories_too_long_to_be_cut(self, seed):
        mdp, target, _ = random_problem(seed)
        log = mdp.rollout(np.full((5, 2), 0.5), 30, 60, np.random.default_rng(seed))
        importance = target[log.states, log.actions] / 0.5
        weights = 0.5 ** np.tile(np.arange(60), 30)
        starts = log.states[::60]
        value, w = reference.bch(log.states, importance, log.rewards, log.next_states, weights, starts, 5, 0.5)
        found = answer(gd.BCH(0.5), log, target)
        assert found.value == pytest.approx(value, abs=1e-10)
        np.testing.assert_allclose(known(found.solution).ratio_params, w, atol=1e-10)

    @pytest.mark.parametrize("discount", [0.5, 1.0])
    def test_bch_with_a_kernel_of_its_own(self, discount):
        mdp, target, _ = random_problem(4)
        log = mdp.rollout(np.full((5, 2), 0.5), 1, 300, np.random.default_rng(4))
        nexts = np.append(log.states[1:], log.states[0]) if discount == 1 else log.next_states
        log = replace(log, next_states=nexts)
        importance = target[log.states, log.actions] / 0.5
        tests = gd.RandomFourier(40, 0.5)
        one = gd.DiscretePolicy(lambda states: np.ones((len(states), 1)), 1)
        rows = tests.fitted(log, one).at(np.arange(5), np.zeros(5, dtype=int))
        assert isinstance(rows, BlockRows)
        psi = rows.base
        weights, starts = discount ** np.arange(300.0), [log.states[0]]
        value, w = reference.bch(
            log.states, importance, log.rewards, nexts, weights, starts, 5, discount, kernel=psi @ psi.T
        )
        found = answer(gd.BCH(discount, tests), log, target)
        assert found.value == pytest.approx(value, abs=1e-9)
        np.testing.assert_allclose(known(found.solution).ratio_params, w, atol=1e-8)

    @pytest.mark.parametrize("seed", range(3))
    def test_discounted_cop_td(self, seed):
        mdp, target, _ = random_problem(seed)
        log = mdp.rollout(np.full((5, 2), 0.5), 1, 300, np.random.default_rng(seed))
        nexts = np.append(log.states[1:], log.states[0])
        log = replace(log, next_states=nexts)
        importance = target[log.states, log.actions] / 0.5
        following = [[(t, 1.0)] for t in nexts]
        value, c = reference.discounted_cop_td(log.states, importance, log.rewards, following, 5, 0.7)
        found = answer(gd.DiscountedCOPTD(0.7), log, target)
        assert found.value == pytest.approx(value, abs=1e-10)
        np.testing.assert_allclose(known(found.solution).ratio_params, c, atol=1e-10)

    @pytest.mark.parametrize("seed", range(3))
    def test_gem_with_too_few_features(self, seed):
        mdp, target, data_dist = random_problem(seed)
        behavior = data_dist / data_dist.sum(axis=1, keepdims=True)
        log = mdp.rollout(behavior, 50, 20, np.random.default_rng(seed))
        table = np.column_stack([np.ones(5), np.random.default_rng(seed).normal(size=(5, 2))])
        features = gd.LinearFeatures(lambda states, actions: table[states, 1:])
        importance = target[log.states, log.actions] * np.exp(-known(log.behavior_log_probs))
        value, c = reference.gem(
            table[log.states], table[log.next_states], importance, log.rewards, table[log.states[::20]], 0.8
        )
        found = answer(gd.GEM(0.8, self_normalised=False), log, target, features)
        assert found.value == pytest.approx(value, abs=1e-10)
        np.testing.assert_allclose(known(found.ratio), c * importance, atol=1e-10)
