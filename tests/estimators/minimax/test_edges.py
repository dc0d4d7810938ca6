"""Estimators over single transitions on degenerate logs, and what they refuse."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import gradientdice as gd
from problems import known
from reference.population import problem
from reference.single_transition import DISCOUNTED_ONLY, EVERY, Lagrangian, cases


def episodes_of(case, count, rng):
    mdp = gd.mdp.TabularMDP(case.transition, case.reward, np.bincount(case.starts, minlength=4) / len(case.starts))
    return mdp.rollout(np.full((4, 2), 0.5), count, 20, rng)


class TestDegenerate:
    @pytest.mark.parametrize(("make", "discount"), cases(EVERY, [0.9, 1.0]))
    def test_one_state(self, make, discount):
        mdp = gd.mdp.single_state()
        data = mdp.sample(100, np.full((1, 2), 0.5), np.random.default_rng(0))
        answer = make(discount).answer(gd.Problem(data, gd.TabularPolicy([[0.3, 0.7]]), gd.Tabular(1, 2), 0))
        assert answer.value == pytest.approx(0.3, abs=1e-8)

    @pytest.mark.parametrize(("make", "discount"), cases(EVERY, [0.9, 1.0]))
    def test_an_action_of_probability_zero_counts_for_nothing(self, make, discount):
        case, rng = problem(0), np.random.default_rng(0)
        case.target = np.tile([1.0, 0.0], (4, 1))
        data = case.sample(500, rng)
        answer = make(discount).answer(gd.Problem(data, case.policy, gd.Tabular(4, 2), 0))
        np.testing.assert_allclose(answer.ratio[data.actions == 1], 0, atol=1e-8)
        only = data.actions == 0
        kept = gd.Transitions(
            data.states[only], data.actions[only], data.rewards[only], data.next_states[only], data.initial_states
        )
        # The behaviour may never take it either.
        assert make(discount).answer(gd.Problem(kept, case.policy, gd.Tabular(4, 2), 0)).value == pytest.approx(
            answer.value, abs=1e-8
        )

    @pytest.mark.parametrize(("make", "discount"), cases(EVERY, [0.9, 1.0]))
    def test_an_action_never_logged_is_refused_if_asked(self, make, discount):
        case, rng = problem(0), np.random.default_rng(0)
        data = case.sample(500, rng)
        only = (data.actions == 0) | (data.states != 2)
        kept = gd.Transitions(
            data.states[only], data.actions[only], data.rewards[only], data.next_states[only], data.initial_states
        )
        with pytest.raises(gd.InputError, match="action 1 in state 2, which the log never contains"):
            gd.Problem(kept, case.policy, gd.Tabular(4, 2, stand_in=False))

    @pytest.mark.parametrize(("make", "discount"), cases(EVERY, [0.9, 1.0]))
    def test_an_action_never_logged_leaves_the_policy_on_the_logged_ones(self, make, discount):
        case, rng = problem(0), np.random.default_rng(0)
        data = case.sample(500, rng)
        only = (data.actions == 0) | (data.states != 2)
        kept = gd.Transitions(
            data.states[only], data.actions[only], data.rewards[only], data.next_states[only], data.initial_states
        )
        restricted = np.array(case.target)
        restricted[2] = [1.0, 0.0]
        found = gd.evaluate(kept, case.policy, make(discount), functions=gd.Tabular(4, 2))
        same = gd.evaluate(kept, gd.TabularPolicy(restricted), make(discount), functions=gd.Tabular(4, 2))
        assert found.value == pytest.approx(same.value, abs=1e-10)
        visits = np.sum(known(same.ratio)[kept.states == 2]) / len(kept)
        assert known(found.diagnostics).unlogged == pytest.approx(visits * case.target[2, 1], abs=1e-6)

    @pytest.mark.parametrize(("make", "discount"), cases(EVERY, [0.9, 1.0]))
    def test_episodes_are_the_units_and_one_is_too_few(self, make, discount):
        case = problem(1)
        data = episodes_of(case, 12, np.random.default_rng(3))
        shuffled = np.argsort(np.tile(np.arange(20), 12), kind="stable")  # episodes interleaved
        columns = ("states", "actions", "rewards", "next_states", "truncated", "episodes", "behavior_log_probs")
        again = gd.Transitions(**{name: getattr(data, name)[shuffled] for name in columns})
        first, second = (gd.evaluate(log, case.policy, make(discount)) for log in (data, again))
        assert second.value == pytest.approx(first.value, abs=1e-8)
        assert second.standard_error == pytest.approx(first.standard_error, rel=1e-6)
        assert first.num_clusters == 12
        one = episodes_of(case, 1, np.random.default_rng(3))
        with pytest.raises(gd.InputError, match="two independent units"):
            gd.evaluate(one, case.policy, make(discount))


class TestRefusals:
    @pytest.mark.parametrize("make", [gd.MWL, gd.MQL, gd.BlackBox, Lagrangian], ids=lambda make: make.__name__)
    def test_networks(self, make):
        case = problem(0)
        with pytest.raises(gd.InputError, match="linear functions"):
            gd.evaluate(case.log(), case.policy, make(1.0), functions=gd.MLP())

    @pytest.mark.parametrize("make", [gd.MWL, gd.MQL, gd.FQE, Lagrangian], ids=lambda make: make.__name__)
    def test_no_initial_states(self, make):
        case = problem(0)
        data = replace(case.log(), initial_states=None)
        with pytest.raises(gd.InputError, match="initial"):
            gd.evaluate(data, case.policy, make(0.9))
        assert gd.evaluate(data, case.policy, make(1.0)).value == pytest.approx(case.truth(1.0), abs=1e-8)
        ending = replace(problem(0, ending=True).log(), initial_states=None)
        with pytest.raises(gd.InputError, match="restart"):
            gd.evaluate(ending, case.policy, make(1.0))

    def test_black_box_below_discount_one(self):
        case = problem(0)
        with pytest.raises(gd.InputError, match="average reward"):
            gd.evaluate(case.log(), case.policy, gd.BlackBox(0.9))

    @pytest.mark.parametrize("make", DISCOUNTED_ONLY, ids=lambda make: make.__name__)
    def test_no_norm_at_discount_one(self, make):
        case = problem(0)
        with pytest.raises(gd.InputError, match="norm=True"):
            gd.evaluate(case.log(), case.policy, make(1.0))

    def test_continuous_actions_go_through_draws(self):
        rng = np.random.default_rng(0)
        states = rng.normal(size=(500, 1))
        actions = rng.normal(size=(500, 1))
        data = gd.Transitions(states, actions, states[:, 0], 0.5 * states + actions, rng.normal(size=(50, 1)))
        policy = gd.SamplingPolicy(lambda s, rng: 0.1 * rng.normal(size=(len(s), 1)))
        for make, discount in ((gd.MWL, 0.9), (gd.MQL, 0.9), (gd.FQE, 0.5), (Lagrangian, 0.9), (gd.BlackBox, 1.0)):
            value = gd.evaluate(data, policy, make(discount), functions=gd.RandomFourier(10, bandwidth=3.0)).value
            assert np.isfinite(value) and abs(value) < 1
        with pytest.raises(gd.InputError, match="tables"):
            gd.evaluate(data, policy, Lagrangian.best_dice(0.9))

    def test_compare_says_why_not(self):
        case = problem(0)
        data = case.sample(800, np.random.default_rng(0))
        every = [gd.MWL(0.9), gd.MQL(0.9), gd.FQE(0.9), gd.BlackBox(0.9), Lagrangian(0.9)]
        table = gd.compare(data, case.policy, every).set_index("estimator")
        for estimator in every:
            note = table.loc[repr(estimator), "note"]
            if isinstance(estimator, gd.BlackBox):
                assert note.startswith("not applicable: BlackBox is for the average reward")
            else:
                assert (
                    note == ""
                    and table.loc[repr(estimator), "low"] < case.truth(0.9) < table.loc[repr(estimator), "high"]
                )

    @pytest.mark.parametrize("make", [gd.MWL, gd.MQL, gd.FQE, gd.BlackBox, Lagrangian], ids=lambda make: make.__name__)
    def test_fields_are_checked(self, make):
        estimator: Any = make(0.9)
        assert hash(estimator) == hash(make(0.9))
        for field in fields(estimator):
            if isinstance(getattr(estimator, field.name), (int, float)) and not isinstance(
                getattr(estimator, field.name), bool
            ):
                for bad in (-1.0, float("nan"), "1"):
                    with pytest.raises(gd.InputError, match=field.name):
                        replace(estimator, **{field.name: bad})
