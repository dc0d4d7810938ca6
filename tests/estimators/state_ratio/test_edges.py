"""State ratios on degenerate logs, and what they refuse."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gradientdice as gd
from problems import known, random_problem
from reference.state_logs import (
    EVERY,
    PLAIN,
    answer,
    every_trajectory,
    every_transition,
    rollout_with_ends,
    with_starts,
)


class TestDegenerate:
    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_one_state(self, estimator):
        log = gd.Transitions([0] * 4, [0, 0, 1, 0], [1.0, 2.0, 3.0, 4.0], [0] * 4, episodes=[0, 0, 1, 1],
                             behavior_log_probs=np.log([0.5, 0.5, 0.5, 0.5]))  # fmt: skip
        found = answer(estimator, log, [[0.3, 0.7]])
        rho = np.array([0.6, 0.6, 1.4, 0.6])
        if estimator in PLAIN:
            assert found.value == pytest.approx(0.1 * np.mean(rho * log.rewards) / (1 - 0.9 * rho.mean()))
        else:
            weights = rho if estimator != gd.BCH(0.9) else rho * [1, 0.9, 1, 0.9]
            assert found.value == pytest.approx(np.sum(weights * log.rewards) / weights.sum())

    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_one_episode_has_a_value_and_no_interval(self, estimator):
        mdp, target, _ = random_problem(0)
        log = mdp.rollout(np.full((5, 2), 0.5), 1, 200, np.random.default_rng(0))
        truth = mdp.value(target, estimator.discount)
        assert answer(estimator, log, target).value == pytest.approx(truth, abs=0.4 if estimator in PLAIN else 0.05)
        with pytest.raises(gd.InputError, match="two independent units"):
            gd.evaluate(log, gd.TabularPolicy(target), estimator)

    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_actions_that_the_policy_never_takes(self, estimator):
        mdp, target, _ = random_problem(0)
        target = np.array(target)
        target[::2] = [1.0, 0.0]
        mdp = with_starts(mdp)
        data = every_transition(mdp, np.full((5, 2), 0.1)) if estimator != gd.BCH(0.9) else every_trajectory(
            mdp, np.full((5, 2), 0.5), 2
        )  # fmt: skip
        chain = mdp
        if isinstance(estimator, gd.DiscountedCOPTD) and estimator.discount < 1:
            chain = gd.mdp.TabularMDP(mdp.transition, mdp.reward, np.full(5, 0.2))
        assert answer(estimator, data, target).value == pytest.approx(
            chain.value(target, estimator.discount), abs=1e-10
        )

    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_an_action_that_the_log_never_shows(self, estimator):
        mdp, target, _ = random_problem(0)
        log = mdp.rollout(np.tile([1.0, 0.0], (5, 1)), 20, 10, np.random.default_rng(0))
        with pytest.raises(gd.InputError, match="action 1, which the log never contains"):
            answer(estimator, log, target)
        log = mdp.rollout(np.array([[1.0, 0.0], *[[0.5, 0.5]] * 4]), 100, 10, np.random.default_rng(0))
        estimate = gd.evaluate(log, gd.TabularPolicy(target), estimator)
        assert known(known(estimate.diagnostics).unlogged) > 0.05 and estimate.verdict is gd.Verdict.DO_NOT_TRUST
        assert any("never logged in that state" in note for note in estimate.notes)

    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_a_policy_that_takes_no_logged_action(self, estimator):
        mdp, _, _ = random_problem(0)
        log = mdp.rollout(np.tile([1.0, 0.0], (5, 1)), 20, 10, np.random.default_rng(0))
        with pytest.raises(gd.InputError, match="the policy takes action 1, which the log never contains"):
            answer(estimator, log, np.tile([0.0, 1.0], (5, 1)))

    @pytest.mark.parametrize(
        "estimator", [*EVERY, gd.COPTD(1.0, "stochastic", 99), gd.GEM(0.9, "stochastic", 99)], ids=repr
    )
    def test_huge_importance_ratios_are_never_trusted_and_larger_ones_refused(self, estimator):
        mdp, target, _ = random_problem(0)
        log = mdp.rollout(np.full((5, 2), 0.5), 40, 10, np.random.default_rng(0))
        for logarithm in (-20, -50, -130):
            odd = np.where(np.arange(400) % 50 == 7, logarithm, known(log.behavior_log_probs))
            estimate = gd.evaluate(replace(log, behavior_log_probs=odd), gd.TabularPolicy(target), estimator)
            assert estimate.verdict is gd.Verdict.DO_NOT_TRUST and np.isfinite(estimate.value)
            if getattr(estimator, "solver", "exact") == "exact":
                assert np.isfinite(known(estimate.interval)).all()
            else:
                assert estimate.interval is None
        with pytest.raises(gd.InputError, match="importance ratio of row 7"):
            answer(estimator, replace(log, behavior_log_probs=np.where(np.arange(400) == 7, -700, 0.0)), target)

    @pytest.mark.parametrize("estimator", [gd.COPTD(1.0), gd.BCH(1.0)], ids=repr)
    def test_two_closed_classes_have_no_unique_ratio(self, estimator):
        transition = np.kron(np.eye(2), np.full((2, 2), 0.5))[:, None].repeat(2, axis=1)
        states, policy = np.repeat(np.arange(4), 4), np.full((4, 2), 0.5)
        mdp = gd.mdp.TabularMDP(transition, np.ones((4, 2)), np.full(4, 0.25))
        data = every_transition(mdp, np.full((4, 2), 0.125), states)
        data = replace(data, weights=None, **{name: getattr(data, name)[known(data.weights) > 0] for name in (
            "states", "actions", "rewards", "next_states", "behavior_log_probs")})  # fmt: skip
        found = answer(estimator, data, policy)
        assert found.status is gd.Status.SINGULAR
        assert found.value == pytest.approx(1.0)

    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_a_state_that_the_log_only_leads_to(self, estimator):
        log = gd.Transitions([0, 1], [0, 1], [1.0, 2.0], [1, 2], episodes=[0, 0], behavior_log_probs=np.log([0.5, 0.5]))
        found = gd.evaluate(
            replace(log, episodes=[0, 1], initial_states=[0, 1]), gd.TabularPolicy(np.full((3, 2), 0.5)), estimator
        )
        assert known(known(found.diagnostics).unlogged) > 0.1 and found.verdict is gd.Verdict.DO_NOT_TRUST


class TestRefusals:
    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_needs_the_behaviours_probabilities(self, estimator):
        mdp, target, _ = random_problem(0)
        log = replace(mdp.rollout(np.full((5, 2), 0.5), 50, 20, np.random.default_rng(0)), behavior_log_probs=None)
        with pytest.raises(gd.InputError, match="behavior_log_probs"):
            answer(estimator, log, target)
        cloned = answer(replace(estimator, behavior=gd.BehaviorCloning()), log, target)
        assert cloned.value == pytest.approx(mdp.value(target, estimator.discount), abs=0.06)
        assert any("estimated behaviour" in note for note in cloned.notes)

    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_continuous_actions(self, estimator):
        rng = np.random.default_rng(0)
        log = gd.Transitions(rng.normal(size=(9, 2)), rng.normal(size=(9, 1)), np.zeros(9), rng.normal(size=(9, 2)),
                             episodes=np.zeros(9, dtype=int), behavior_log_probs=np.zeros(9))  # fmt: skip
        policy = gd.SamplingPolicy(lambda states, rng: np.zeros((len(states), 1)))
        with pytest.raises(gd.InputError, match="discrete actions"):
            estimator.answer(gd.Problem(log, policy, None, 0))

    def test_discounts_that_do_not_apply(self):
        _, target, log = rollout_with_ends(0)
        with pytest.raises(gd.InputError, match="COPTD is for the average reward"):
            answer(gd.COPTD(0.9), log, target)
        with pytest.raises(gd.InputError, match="GEM needs a discount below 1"):
            answer(gd.GEM(1.0), log, target)

    def test_missing_episodes_and_initial_states(self):
        mdp, target, data_dist = random_problem(0)
        behavior = data_dist / data_dist.sum(axis=1, keepdims=True)
        log = mdp.sample(2000, data_dist, np.random.default_rng(0))
        log = replace(log, behavior_log_probs=np.log(behavior[log.states, log.actions]))
        with pytest.raises(gd.InputError, match="BCH needs whole trajectories"):
            answer(gd.BCH(0.9), log, target)
        bare = replace(log, initial_states=None)
        with pytest.raises(gd.InputError, match="needs initial states"):
            answer(gd.GEM(0.9), bare, target)
        for estimator in (gd.COPTD(1.0), gd.BCH(1.0), gd.DiscountedCOPTD(0.9)):
            assert answer(estimator, bare, target).value == answer(estimator, log, target).value
        with pytest.raises(gd.InputError, match="restart"):
            answer(gd.COPTD(1.0), replace(bare, terminated=np.arange(2000) == 3), target)

    def test_each_refuses_in_its_own_name(self):
        _, target, log = rollout_with_ends(0)
        bare = replace(log, behavior_log_probs=None)
        for estimator in (gd.COPTD(1.0), gd.DiscountedCOPTD(1.0), gd.DiscountedCOPTD(0.9)):
            with pytest.raises(gd.InputError, match=f"^{type(estimator).__name__} "):
                answer(estimator, bare, target)

    @pytest.mark.parametrize("estimator", EVERY, ids=repr)
    def test_features_of_the_action(self, estimator):
        _, target, log = rollout_with_ends(0)
        both = gd.LinearFeatures(lambda states, actions: np.column_stack([states, states * actions]))
        with pytest.raises(gd.InputError, match="depend on the action"):
            answer(estimator, log, target, both)
        with pytest.raises(gd.InputError, match="linear functions"):
            estimator.answer(gd.Problem(log, gd.TabularPolicy(target), gd.MLP(), 0))

    def test_bad_options(self):
        for estimator in (gd.COPTD(1.0), gd.DiscountedCOPTD(0.9), gd.BCH(0.9), gd.GEM(0.9)):
            for name in ("discount", "rank_tolerance", "learning_rate"):
                for bad in (-1.0, float("nan")):
                    if hasattr(estimator, name):
                        with pytest.raises(gd.InputError, match=name):
                            replace(estimator, **{name: bad})
        adam: Any = "adam"
        table: Any = gd.Tabular(2, 2)
        with pytest.raises(gd.InputError, match="solver"):
            gd.GEM(0.9, solver=adam)
        with pytest.raises(gd.InputError, match="tests"):
            gd.BCH(0.9, tests=table)

    def test_compare_says_why_one_does_not_apply(self):
        _, target, log = rollout_with_ends(0)
        table = gd.compare(
            log, gd.TabularPolicy(target), [gd.GEM(0.9), gd.COPTD(0.9), gd.BCH(0.9), gd.GradientDICE(0.9)]
        )
        notes = dict(zip(table["estimator"].str.extract(r"(\w+)\(")[0], table["note"], strict=True))
        assert notes["COPTD"].startswith("not applicable: COPTD is for the average reward")
        assert notes["GEM"] == notes["BCH"] == ""
        values = dict(zip(table["estimator"].str.extract(r"^(\w+)\(")[0], table["value"], strict=True))
        assert values["GEM"] == pytest.approx(values["GradientDICE"], abs=0.1)
