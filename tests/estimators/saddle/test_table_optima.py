"""With a table the optima of GenDICE and of DualDICE at any power are found exactly: minimised here by SciPy instead."""

import numpy as np
import pytest
from scipy.optimize import minimize

import gradientdice as gd
from problems import known, random_problem


def empirical(seed=0, rows=3000):
    """A log, and its model in plain NumPy: d̂_μ(s,a), p̂(s'a'|s,a) under the policy, and the first pairs' distribution."""
    mdp, target, data_dist = random_problem(seed)
    data = mdp.sample(rows, data_dist, np.random.default_rng(seed))
    pairs = data.states * 2 + data.actions
    share = np.bincount(pairs, minlength=10) / rows
    following = np.zeros((10, 10))
    for pair, state in zip(pairs, data.next_states, strict=True):
        following[pair, 2 * state : 2 * state + 2] += target[state]
    following /= following.sum(axis=1, keepdims=True)
    start = np.zeros(10)
    for state in known(data.start_states):
        start[2 * state : 2 * state + 2] += target[state] / len(known(data.start_states))
    return data, gd.TabularPolicy(target), pairs, share, following, start


@pytest.mark.parametrize("discount", [0.0, 0.6, 0.95, 1.0])
def test_gendice_is_least_at_the_flow_solution(discount):
    data, policy, pairs, share, following, start = empirical()

    def divergence(logs):
        """GenDICE's objective with f and η at their best: f = 2(Tτ − dτ)/dτ and η = E[τ] − 1."""
        mass = share * np.exp(logs)
        onward = (1 - discount) * start + discount * mass @ following
        return np.sum((onward - mass) ** 2 / mass) + 0.5 * (mass.sum() - 1) ** 2

    estimate = gd.evaluate(data, policy, gd.GenDICE(discount))
    found = minimize(divergence, np.zeros(10), method="BFGS", options={"gtol": 1e-12, "maxiter": 10_000})
    assert found.fun < 1e-10
    np.testing.assert_allclose(known(estimate.ratio), np.exp(found.x)[pairs], rtol=2e-3)
    assert estimate.value == pytest.approx(float(share @ (np.exp(found.x) * _rewards(data, pairs))), abs=1e-4)
    assert any("optimum of GenDICE" in note for note in estimate.notes)


@pytest.mark.parametrize("power", [1.5, 2.0, 3.0])
@pytest.mark.parametrize("discount", [0.0, 0.6, 0.9])
def test_dualdice_at_any_power(power, discount):
    data, policy, pairs, share, following, start = empirical(1)

    def objective(nu):
        change = nu - discount * following @ nu
        slope = np.sign(change) * np.abs(change) ** (power - 1)
        gradient = share * slope - discount * (share * slope) @ following - (1 - discount) * start
        return share @ np.abs(change) ** power / power - (1 - discount) * start @ nu, gradient

    found = minimize(objective, np.ones(10), jac=True, method="BFGS", options={"gtol": 1e-11, "maxiter": 10_000})
    change = found.x - discount * following @ found.x
    ratio = np.sign(change) * np.abs(change) ** (power - 1)
    estimate = gd.evaluate(data, policy, gd.DualDICE(discount, power=power))
    np.testing.assert_allclose(known(estimate.ratio), ratio[pairs], rtol=1e-3, atol=1e-4)


def test_the_interval_is_that_of_the_flow_solution():
    data, policy, *_ = empirical(2)
    plain = gd.evaluate(data, policy, gd.GradientDICE(0.9))
    for estimator in (gd.GenDICE(0.9), gd.GenDICE(0.9, positivity=gd.Softplus()), gd.DualDICE(0.9, power=1.5)):
        other = gd.evaluate(data, policy, estimator)
        assert other.value == pytest.approx(plain.value, rel=1e-9)
        assert other.interval == pytest.approx(plain.interval, rel=1e-6)
        assert other.verdict == plain.verdict and other.estimator == repr(estimator)


def test_the_verdict_knows_how_well_the_equations_can_be_solved():
    mdp, target = gd.mdp.boyan_chain("continuing"), np.tile([0.1, 0.9], (13, 1))
    data = mdp.rollout(np.full((13, 2), 0.5), 100, 100, np.random.default_rng(0))
    found = [
        gd.evaluate(data, gd.TabularPolicy(target), gd.DualDICE(0.99999, power=power), functions=gd.Tabular(13, 2))
        for power in (1.5, 2.0)
    ]
    assert known(found[0].diagnostics).condition_number == known(found[1].diagnostics).condition_number > 1e6
    assert found[0].verdict == found[1].verdict and known(found[0].diagnostics).num_features == 26


def test_a_solver_that_is_given_is_used():
    data, policy, *_ = empirical(2)
    learned = gd.evaluate(data, policy, gd.GenDICE(0.9), solver=gd.PrimalDual(200, 0.01), functions=gd.Tabular(5, 2))
    assert learned.interval is None and learned.value != gd.evaluate(data, policy, gd.GenDICE(0.9)).value


def _rewards(data, pairs):
    return np.bincount(pairs, data.rewards, 10) / np.maximum(np.bincount(pairs, minlength=10), 1)
