"""Fitted Q evaluation: when it converges, what it says when it does not, and its networks."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.dice.stochastic.fitted_q import FittedQ, member_seeds
from gradientdice.dice.stochastic.sources import NetworkSource
from gradientdice.estimators.doubly_robust.network_scores import mean_output, value_bounds
from problems import known
from reference.population import problem


def two_states():
    """Tsitsiklis and Van Roy's example: features 1 and 2, all roads lead to the second state, which is rarely logged."""
    data = gd.Transitions([0] * 9 + [1], [0] * 10, [1.0] * 10, [1] * 10, initial_states=[0])
    functions = gd.LinearFeatures(lambda s, a: s[:, None] + 1.0, intercept=False)
    return data, gd.TabularPolicy(np.ones((2, 1))), functions


def test_says_that_it_diverges():
    data, policy, functions = two_states()
    answer = gd.FQE(0.9).answer(gd.Problem(data, policy, functions, 0))
    assert answer.status is gd.Status.NOT_CONVERGED and "LSTDQ" in answer.status.message
    assert known(answer.solution).stats["spectral_radius"] == pytest.approx(0.9 * 2.2 / 1.3, abs=1e-12)
    assert np.isfinite(answer.value) and answer.influence is None and answer.ratio is None
    estimate = gd.evaluate(data, policy, gd.FQE(0.9), functions=functions)
    assert estimate.interval is None and str(estimate.verdict) == "do not trust"
    # The same features with a discount under which the radius is below 1.
    assert gd.FQE(0.5).answer(gd.Problem(data, policy, functions, 0)).status.ok


def test_too_few_iterations_are_told():
    case = problem(0)
    answer = gd.FQE(0.9, iterations=5).answer(gd.Problem(case.log(), case.policy, gd.Tabular(4, 2), 0))
    assert answer.status is gd.Status.NOT_CONVERGED and known(answer.solution).stats["spectral_radius"] < 1
    chain = gd.mdp.TabularMDP(case.transition, case.reward, np.bincount(case.starts, minlength=4) / 7)
    q = np.zeros((4, 2))
    for _ in range(5):
        q = case.reward + 0.9 * case.transition @ np.sum(case.target * q, axis=1)
    assert answer.value == pytest.approx(0.1 * chain.initial @ np.sum(case.target * q, axis=1), abs=1e-12)


def test_the_tolerance_bounds_the_error():
    case = problem(2)
    for tolerance in (1e-2, 1e-4, 1e-8):
        value = gd.FQE(0.9, tolerance=tolerance).answer(gd.Problem(case.log(), case.policy, gd.Tabular(4, 2), 0)).value
        assert abs(value - case.truth(0.9)) < 3 * tolerance


def test_a_chain_that_goes_round_in_periods():
    """At discount 1 the regression goes round with it, and says so; LSTDQ does not mind."""
    data = gd.Transitions([0, 1], [0, 0], [1.0, 0.0], [1, 0])
    policy = gd.TabularPolicy(np.ones((2, 1)))
    answer = gd.FQE(1.0, iterations=100).answer(gd.Problem(data, policy, gd.Tabular(2, 1), 0))
    assert answer.status is gd.Status.NOT_CONVERGED
    assert known(answer.solution).stats["spectral_radius"] == pytest.approx(1)
    assert gd.LSTDQ(1.0).answer(gd.Problem(data, policy, gd.Tabular(2, 1), 0)).value == pytest.approx(0.5)


def test_the_average_reward_needs_a_constant():
    data, policy, functions = two_states()
    with pytest.raises(gd.InputError, match="constant among the features"):
        gd.FQE(1.0).answer(gd.Problem(data, policy, functions, 0))


@pytest.mark.parametrize(("discount", "ending"), [(0.8, True), (1.0, True), (0.99, False), (1.0, False)])
def test_networks_find_the_value_but_no_interval(discount, ending):
    case = problem(1, ending=ending)
    data = case.sample(3000, np.random.default_rng(0))
    one_hot = gd.Transitions(
        np.eye(4)[data.states],
        data.actions,
        data.rewards,
        np.eye(4)[data.next_states],
        np.eye(4)[data.initial_states],
        terminated=data.terminated,
    )
    policy = gd.DiscretePolicy(lambda states: states @ case.target, 2)
    estimate = gd.evaluate(one_hot, policy, gd.FQE(discount, steps=2000, members=2), functions=gd.MLP((32,)))
    assert not any("too few" in note for note in estimate.notes)
    assert estimate.interval is None and estimate.ratio is None and estimate.status.ok
    assert any("GradientDICE" in note for note in estimate.notes)
    spread = float(np.std(case.reward))
    assert abs(estimate.value - case.truth(discount)) < 0.1 * spread
    assert abs(estimate.behavior_mean - case.truth(discount)) > 0.1 * spread  # not by luck


def doubling(n: int) -> tuple[gd.Transitions, gd.DiscretePolicy]:
    """The policy doubles the state; the log says little of where that leads."""
    rng = np.random.default_rng(0)
    states, actions = rng.normal(size=(n, 1)), rng.integers(0, 2, n)
    following = np.where((actions == 1)[:, None], 2 * states, rng.normal(size=(n, 1)))
    policy = gd.DiscretePolicy(lambda states: np.tile([0.0, 1.0], (len(states), 1)), 2)
    return gd.Transitions(states, actions, np.tanh(states[:, 0]), following, states[:50]), policy


def test_networks_stay_within_what_the_rewards_allow():
    data, policy = doubling(400)
    problem = gd.Problem(data, policy, gd.MLP((32,)), 0)
    log, largest = NetworkSource.create(problem.inputs, 0.95), 1 / (1 - 0.95)

    def furthest(bounded: bool) -> float:
        training = FittedQ(steps=2000, least_rate=0.1, bounded=bounded)
        (layers,) = training.fit(gd.MLP((32,)), [log], 0.95, member_seeds(0, 2), progress=False)
        return float(np.abs(mean_output(layers, problem.inputs.current, 2)).max())

    assert furthest(bounded=False) > 10 * largest  # without bounds it diverges
    assert furthest(bounded=True) < 3 * largest
    answer = gd.FQE(0.95, steps=2000, members=2).answer(problem)
    assert data.rewards.min() <= answer.value <= data.rewards.max()
    # A row that counts 0 times says nothing about what is possible.
    outlier = gd.Transitions(
        np.append(data.states, [[0.0]], axis=0),
        np.append(data.actions, 0),
        np.append(data.rewards, 1e4),
        np.append(data.next_states, [[0.0]], axis=0),
        data.initial_states,
        weights=np.append(np.ones(400), 0.0),
    )
    assert value_bounds(outlier, 0.95) == value_bounds(data, 0.95)
    answer = gd.FQE(0.95, steps=2000, members=2).answer(gd.Problem(outlier, policy, gd.MLP((32,)), 0))
    assert data.rewards.min() <= answer.value <= data.rewards.max()


def test_at_discount_1_a_constant_in_the_rewards_is_one_in_the_value():
    data, policy = doubling(400)
    shifted = replace(data, rewards=data.rewards + 1e6)
    fqe = gd.FQE(1.0, steps=300, members=1)
    answers = [fqe.answer(gd.Problem(log, policy, gd.MLP((16,)), 0)).value for log in (data, shifted)]
    assert answers[1] - 1e6 == pytest.approx(answers[0], abs=1e-3)


def test_says_where_the_steps_are_too_few_for_the_discount():
    data, policy = doubling(50)
    answer = gd.FQE(0.9999, steps=1000, members=1).answer(gd.Problem(data, policy, gd.MLP((8,)), 0))
    assert any("about 95% of the way" in note and "1,000 steps are too few" in note for note in answer.notes)
