"""Interval methods: against each other, against SciPy, and against a textbook."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

import gradientdice as gd
from gradientdice.statistics.intervals import standard_error

METHODS = [gd.NormalInterval(), gd.BootstrapInterval(2000), gd.EmpiricalLikelihood(), gd.SkewInterval()]


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


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # SciPy's optimiser, before 1.16
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


@pytest.mark.parametrize("method", METHODS, ids=repr)
@given(
    sample=arrays(np.float64, 20, elements=st.floats(-5, 5), unique=True),
    scale=st.floats(0.01, 100),
    shift=st.floats(-10, 10),
)
def test_intervals_hold_the_value_scale_with_it_and_widen_with_confidence(method, sample, scale, shift):
    shares = shares_of(sample)
    low, high = method.interval(0.0, shares, 0.9, 0)
    assert low < 0 < high
    moved = method.interval(shift, [scale * part for part in shares], 0.9, 0)
    np.testing.assert_allclose(moved, [shift + scale * low, shift + scale * high], rtol=1e-6, atol=1e-6 * scale)
    wide = method.interval(0.0, shares, 0.99, 0)
    assert wide[0] < low and high < wide[1]


def test_many_units_and_replications_fit_into_memory():
    """50,000 units by 1,000 replications would be 400 MB at once."""
    sample = np.random.default_rng(0).normal(size=50_000)
    tracemalloc.start()
    low, high = gd.BootstrapInterval(1000).interval(0.0, shares_of(sample), 0.95, 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6
    np.testing.assert_allclose([low, high], 1.96 / np.sqrt(50_000) * np.array([-1, 1]), rtol=0.15)
