"""Influence values of state ratios against finite differences; coverage and consistency."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.estimators.state_ratio.state_answer import solve_flow
from gradientdice.estimators.state_ratio.state_features import state_log
from gradientdice.estimators.state_ratio.state_flow import StateFlow
from problems import covers, known, random_problem
from reference.state_logs import AVERAGE, DISCOUNTED, EVERY, answer, rollout_with_ends

FEATURES = gd.LinearFeatures(lambda states, actions: np.column_stack([np.sin(states), states**2 / 9]))


CASES = [(estimator, functions) for estimator in EVERY for functions in (None, FEATURES)]


CASES += [(gd.BCH(d, gd.RandomFourier(7, 0.5)), FEATURES) for d in (0.9, 1.0)]


class TestShares:
    """Influence values against finite differences: what the value does when an observation counts a little more."""

    @pytest.mark.parametrize(("estimator", "functions"), CASES, ids=lambda case: type(case).__name__)
    def test_by_episode(self, estimator, functions):
        absorbed, target, log = rollout_with_ends(3, episodes=12, horizon=5)
        log = replace(log, initial_states=np.array([0, 1, 2, 2, 3]))
        found = answer(estimator, log, target, functions)
        assert found.influence is not None and np.abs(found.influence.rows).max() > 1e-4
        assert found.influence.rows.sum() == pytest.approx(0, abs=1e-12)
        for episode in np.unique(known(log.episodes))[:6]:
            own = log.episodes == episode
            values = [
                answer(estimator, replace(log, weights=1 + step * own), target, functions).value
                for step in (1e-5, -1e-5)
            ]
            slope = (values[0] - values[1]) / 2e-5
            assert found.influence.rows[own].sum() == pytest.approx(slope, rel=1e-5, abs=1e-7)

    @pytest.mark.parametrize("estimator", [*AVERAGE, *DISCOUNTED], ids=repr)
    def test_by_row(self, estimator):
        absorbed, target, log = rollout_with_ends(2, episodes=12, horizon=5)
        log = replace(log, initial_states=np.array([0, 1, 2, 2, 3]), weights=np.linspace(0.5, 2, len(log)))
        found = answer(estimator, log, target)
        for row in range(0, len(log), 7):
            own = np.arange(len(log)) == row
            values = [
                answer(estimator, replace(log, weights=log.weights * (1 + step * own)), target).value
                for step in (1e-5, -1e-5)
            ]
            assert found.influence.rows[row] == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-5, abs=1e-7)

    @pytest.mark.parametrize(
        "estimator", [e for e in EVERY if e.discount == 1 or type(e) is not gd.DiscountedCOPTD], ids=repr
    )
    def test_initial_states(self, estimator):
        absorbed, target, log = rollout_with_ends(3, episodes=12, horizon=5)
        starts, copies = np.array([0, 1, 2, 2, 3]), 3000
        found = answer(estimator, replace(log, initial_states=starts), target)
        many = np.repeat(starts, copies)
        base = answer(estimator, replace(log, initial_states=many), target).value
        assert base == pytest.approx(found.value, abs=1e-10)
        for index, start in enumerate(starts):
            more = answer(estimator, replace(log, initial_states=np.append(many, start)), target).value
            assert found.influence.initial[index] == pytest.approx((more - base) * copies, rel=1e-3, abs=1e-6)

    def test_of_a_value_that_is_not_self_normalised(self):
        """Where E[c] = 1 is asked for and the value E[ρcr] is not invariant to c's scale."""
        _, target, log = rollout_with_ends(3, episodes=12, horizon=5)
        importance = target[log.states, log.actions] / 0.5

        def fit(weights):
            flow = StateFlow.of(
                state_log("", gd.Problem(log, gd.TabularPolicy(target)), 2, gd.Tabular(5, 2), weights), importance, 1.0
            )
            fit, _ = solve_flow(flow, flow.start, mean_one=True, normalised=False, rank_tolerance=0.0)
            return flow, fit, flow.value(fit.params, normalised=False)[0]

        flow, found, _ = fit(np.ones(len(log)))
        influence = flow.shares(found, normalised=False)
        shares = influence.rows.copy()
        shares[log.first_rows] += known(influence.initial)  # a first row is a start, too, and counts as one
        for row in range(0, len(log), 5):
            own = np.arange(len(log)) == row
            slope = (fit(1 + 1e-5 * own)[2] - fit(1 - 1e-5 * own)[2]) / 2e-5
            assert shares[row] == pytest.approx(slope, rel=1e-5, abs=1e-8)

    def test_discounted_cop_td_has_no_shares_of_initial_states(self):
        _, target, log = rollout_with_ends(3)
        assert known(answer(gd.DiscountedCOPTD(0.9), log, target).influence).initial is None

    @pytest.mark.parametrize("estimator", [gd.COPTD(1.0), gd.BCH(1.0), gd.BCH(0.8), gd.GEM(0.8)], ids=repr)
    def test_intervals_cover(self, estimator):
        mdp, target, _ = random_problem(1)
        truth = mdp.value(target, estimator.discount)
        covered = [covers(answer(estimator, log, target), log, truth) for log in two_hundred_logs()]
        assert 0.88 <= np.mean(covered) <= 0.99


@cache
def two_hundred_logs():
    """The same for every estimator."""
    mdp, behavior = random_problem(1)[0], np.full((5, 2), 0.5)
    return [mdp.rollout(behavior, 50, 20, np.random.default_rng(seed)) for seed in range(200)]


@cache
def forty_logs(episodes):
    """The same for every estimator."""
    mdp, behavior = random_problem(2)[0], np.full((5, 2), 0.5)
    return [mdp.rollout(behavior, episodes, 10, np.random.default_rng([episodes, seed])) for seed in range(40)]


class TestConsistency:
    @pytest.mark.parametrize("estimator", [gd.COPTD(1.0), gd.BCH(1.0), gd.BCH(0.8), *DISCOUNTED], ids=repr)
    def test_error_falls_with_the_root_of_the_number_of_episodes(self, estimator):
        mdp, target, _ = random_problem(2)
        behavior, sizes = np.full((5, 2), 0.5), (40, 160, 640)
        truth = mdp.value(target, estimator.discount)
        if isinstance(estimator, gd.DiscountedCOPTD):
            state, logged = mdp.initial, np.zeros(5)
            for _ in range(10):
                logged, state = logged + state / 10, state @ np.einsum("sa,sat->st", behavior, mdp.transition)
            truth = gd.mdp.TabularMDP(mdp.transition, mdp.reward, logged).value(target, 0.9)
        errors = []
        for size in sizes:
            values = [answer(estimator, log, target).value for log in forty_logs(size)]
            errors.append(np.sqrt(np.mean((np.array(values) - truth) ** 2)))
        slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
        assert -0.75 < slope < -0.3
