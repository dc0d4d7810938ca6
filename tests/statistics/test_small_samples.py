"""Tables with few rows for each pair: the error is as large as the noise, not as the residuals."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.problem.problem import Problem
from gradientdice.statistics.intervals import independent_shares
from gradientdice.statistics.small_samples import interval_shares

PAIRS = 60


def bandit(rng, times, deviation=1.0, **options):
    """Contexts with one action each, logged as often as said; the value is their mean reward, truly 0."""
    states = np.repeat(np.arange(PAIRS), np.resize(times, PAIRS))
    rewards = deviation * rng.normal(size=len(states))
    return gd.Transitions(
        states, np.zeros(len(states), int), rewards, states, initial_states=np.tile(np.arange(PAIRS), 20), **options
    )


POLICY = gd.TabularPolicy(np.ones((PAIRS, 1)))


def corrected(data, estimator=None):
    problem = Problem(data, POLICY)
    answer = (estimator or gd.GradientDICE(0.0)).answer(problem)
    assert answer.influence is not None
    return answer.influence, interval_shares(answer.influence, problem), problem


def test_shares_are_scaled_by_the_number_of_rows_of_a_pair(rng):
    data = bandit(rng, (2, 3, 5))
    influence, samples, _ = corrected(data)
    counts = np.bincount(data.states)[data.states]
    np.testing.assert_allclose(samples[0], influence.rows * np.sqrt(counts / (counts - 1)))


def test_a_row_of_weight_two_counts_as_two_in_its_pair(rng):
    data = bandit(rng, (2,), weights=np.tile([2.0, 1.0], PAIRS))
    influence, samples, _ = corrected(data)
    np.testing.assert_allclose(samples[0] / influence.rows, np.tile([3**0.5, 1.5**0.5], PAIRS))


def test_pairs_logged_once_get_the_noise_of_the_others(rng):
    data = bandit(rng, (1, 6), deviation=2.0)
    influence, samples, problem = corrected(data)
    once = np.bincount(data.states)[data.states] == 1
    np.testing.assert_allclose(influence.rows[once], 0, atol=1e-12)
    # A pair has 1/60 of the mass.
    np.testing.assert_allclose(np.abs(samples[0][once]) * PAIRS, 2.0, rtol=0.2)


def test_shares_of_pairs_logged_once_cancel_so_that_every_method_has_an_interval():
    for seed in range(40):
        data = bandit(np.random.default_rng(seed), (1, 1, 1, 1, 2))
        influence, samples, problem = corrected(data)
        value = gd.GradientDICE(0.0).answer(problem).value
        assert all(abs(shares.sum()) < 1e-12 * np.abs(shares).sum() for shares in samples)
        low, high = gd.EmpiricalLikelihood().interval(value, samples, 0.95, 0)
        assert low < value < high


def test_where_every_pair_was_logged_once_the_verdict_is_do_not_trust(rng):
    found = gd.evaluate(bandit(rng, (1,)), POLICY, discount=0.0)
    assert str(found.verdict) == "do not trust" and any("logged once" in reason for reason in found.reasons)


def test_rows_that_no_pair_was_fitted_to_are_left_alone(rng):
    """Cross-fitted residuals are as large as the noise; so are those of trajectories' weights."""
    data = bandit(rng, (6,))
    influence, samples, _ = corrected(data, gd.DRL(0.0, 2))
    np.testing.assert_array_equal(samples[0], independent_shares(influence, data)[0])


def test_influence_values_stay_derivatives_and_deterministic_logs_certain(rng):
    data = bandit(rng, (2,), deviation=0.0)
    _, samples, _ = corrected(data)
    np.testing.assert_array_equal(samples[0], 0)


@pytest.mark.parametrize("times", [(2,), (1, 2)])
def test_coverage_with_few_rows_for_each_pair(rng, times):
    inside = 0
    for _ in range(120):
        low, high = gd.evaluate(bandit(rng, times), POLICY, discount=0.0).interval or (0, 0)
        inside += low <= 0 <= high
    assert 0.9 < inside / 120 < 0.99
