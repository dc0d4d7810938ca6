"""Interval methods: against each other, against SciPy, and against a textbook."""

import numpy as np
import pytest
from scipy import stats

import gradientdice as gd
from gradientdice.inference.intervals import standard_error

METHODS = [gd.NormalInterval(), gd.BootstrapInterval(2000), gd.EmpiricalLikelihood()]


def shares_of(sample):
    """A mean's shares: (x − mean) / n."""
    return [(sample - sample.mean()) / len(sample)]


def test_normal_interval_is_students():
    sample = np.random.default_rng(0).normal(3, 2, size=40)
    expected = stats.t.interval(0.9, 39, sample.mean(), stats.sem(sample))
    ours = gd.NormalInterval().interval(sample.mean(), shares_of(sample), 0.9, 0)
    np.testing.assert_allclose(ours, expected, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_methods_agree_on_large_samples(method):
    sample = np.random.default_rng(0).normal(3, 2, size=20_000)
    ours = method.interval(sample.mean(), shares_of(sample), 0.95, 0)
    reference = gd.NormalInterval().interval(sample.mean(), shares_of(sample), 0.95, 0)
    np.testing.assert_allclose(ours, reference, atol=0.1 * standard_error(shares_of(sample)))


@pytest.mark.parametrize("method", METHODS[1:], ids=repr)
def test_skewed_samples_get_skewed_intervals(method):
    sample = np.random.default_rng(1).exponential(size=80)
    low, high = method.interval(sample.mean(), shares_of(sample), 0.95, 0)
    assert high - sample.mean() > 1.1 * (sample.mean() - low)


def test_empirical_likelihood_equals_owens_definition():
    """At each end, −2 Σ log(n p) of the best weights with that mean is the χ² quantile; weights by SciPy."""
    from scipy.optimize import minimize

    sample = np.random.default_rng(2).gamma(2.0, size=12)
    low, high = gd.EmpiricalLikelihood().interval(sample.mean(), shares_of(sample), 0.9, 0)
    for end in (low, high):
        constraints = [
            {"type": "eq", "fun": lambda p: p.sum() - 1},
            {"type": "eq", "fun": lambda p, e=end: p @ sample - e},
        ]
        best = minimize(
            lambda p: -np.sum(np.log(12 * p)),
            np.full(12, 1 / 12),
            bounds=[(1e-9, 1)] * 12,
            constraints=constraints,
            tol=1e-12,
        )
        assert 2 * best.fun == pytest.approx(stats.chi2.ppf(0.9, 1), rel=1e-3)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_two_independent_kinds_of_shares_add_their_variances(method):
    rng = np.random.default_rng(0)
    samples = [rng.normal(size=5000) / 5000, 2 * rng.normal(size=4000) / 4000]
    low, high = method.interval(0.0, samples, 0.95, 0)
    expected = 1.96 * np.hypot(1 / np.sqrt(5000), 2 / np.sqrt(4000))
    assert (high - low) / 2 == pytest.approx(expected, rel=0.06)


def test_one_unit_is_not_enough():
    with pytest.raises(gd.InputError, match="one episode"):
        standard_error([np.array([0.0])])


def test_thousands_of_replications_take_seconds():
    """No timing: the work is bounded in memory and finishes."""
    sample = np.random.default_rng(0).normal(size=50_000)
    low, high = gd.BootstrapInterval(1000).interval(0.0, shares_of(sample), 0.95, 0)
    assert low < 0 < high
