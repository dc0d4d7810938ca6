"""The published stochastic updates lead to the exact fixed point of a stationary log."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from problems import random_problem
from reference.state_logs import STARTS, answer, every_transition, rollout_with_ends


class TestStochastic:
    @pytest.mark.parametrize(
        "estimator",
        [gd.COPTD(1.0, "stochastic"), gd.DiscountedCOPTD(0.8, "stochastic"), gd.GEM(0.8, "stochastic", 30_000)],
        ids=repr,
    )
    def test_leads_to_the_exact_fixed_point_of_a_stationary_log(self, estimator):
        mdp, target, _ = random_problem(1)
        log = mdp.rollout(np.full((5, 2), 0.5), 1, 3000, np.random.default_rng(1))
        log = replace(log, next_states=np.append(log.states[1:], log.states[0]), initial_states=STARTS)
        exact = answer(replace(estimator, solver="exact"), log, target).solution.ratio_params
        found = [answer(estimator, log, target, seed=seed).solution.ratio_params for seed in range(2)]
        start = np.abs(1 - exact).max()
        assert start > 0.1
        for params in found:
            assert np.abs(params - exact).max() < 0.25 * start
        assert not np.array_equal(*found)
        again = answer(estimator, log, target, seed=0)
        assert np.array_equal(again.solution.ratio_params, found[0]) and again.influence is None

    @pytest.mark.parametrize(
        "estimator", [gd.COPTD(1.0, "stochastic", 3000), gd.GEM(0.8, "stochastic", 3000)], ids=repr
    )
    def test_runs_through_ends_and_restarts(self, estimator):
        _, target, log = rollout_with_ends(1)
        exact = answer(replace(estimator, solver="exact"), log, target)
        found = answer(estimator, log, target)
        assert found.status.ok and abs(found.value - exact.value) < 0.5

    def test_says_that_it_diverged(self):
        _, target, log = rollout_with_ends(1)
        estimate = gd.evaluate(log, gd.TabularPolicy(target), gd.GEM(0.9, "stochastic", 2000, learning_rate=50.0))
        assert estimate.status is gd.Status.DIVERGED and np.isfinite(estimate.value)

    def test_published_update_is_wrong_where_the_log_is_not_stationary(self):
        """Why the exact solver has its error at the logged states: transitions from any other distribution."""
        mdp, target, data_dist = random_problem(0)
        data = every_transition(mdp, data_dist)
        truth = mdp.value(target, 1.0)
        published = answer(gd.COPTD(1.0, "stochastic"), data, target)
        assert abs(answer(gd.COPTD(1.0), data, target).value - truth) < 1e-12
        assert abs(published.value - truth) > 0.02
        assert any("next states" in note for note in published.notes)
