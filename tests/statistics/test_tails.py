"""The skewness of an estimate's error, and the interval that goes with it."""

import numpy as np
import pytest
from scipy import stats

import gradientdice as gd
from gradientdice.statistics.checks import Verdict
from gradientdice.statistics.intervals import FEW, SKEWED, largest_skewness, skewness, standard_error, tail_check


def shares_of(sample):
    """A mean's shares: (x − mean) / n."""
    return (sample - sample.mean()) / len(sample)


def test_skewness_is_that_of_a_sample_over_the_root_of_its_size(rng):
    sample = rng.exponential(size=400)
    assert skewness([shares_of(sample)]) == pytest.approx(stats.skew(sample) / np.sqrt(400))


def test_of_equal_shares_only_their_number_counts():
    hits = np.zeros(100_000)
    hits[:25] = 7.0
    assert skewness([shares_of(hits)]) == pytest.approx(1 / 5, rel=1e-3)
    # 1/√k is half as far off, relatively, as k, whose standard deviation is √k.
    assert largest_skewness([shares_of(hits)]) == pytest.approx(1 / 5 + 1 / 25, rel=1e-2)


def test_the_error_of_the_skewness_is_that_over_many_samples(rng):
    samples = [rng.gamma(4.0, size=2_000) for _ in range(300)]
    found = [skewness([shares_of(sample)]) for sample in samples]
    claimed = [(largest_skewness([shares_of(sample)]) - abs(g)) / 2 for sample, g in zip(samples, found, strict=True)]
    beyond_normal = np.sqrt(np.var(found) - 6 / 2_000**2)
    assert np.median(claimed) == pytest.approx(beyond_normal, rel=0.2)


def test_few_normal_shares_are_not_called_skewed(rng):
    found = [largest_skewness([shares_of(rng.normal(size=20))]) for _ in range(300)]
    assert np.mean(np.array(found) > SKEWED) < 0.3 and np.mean(np.array(found) > FEW) < 0.01


def test_two_kinds_of_shares_add_their_cumulants(rng):
    rows, starts = shares_of(rng.normal(size=3_000)), shares_of(rng.exponential(size=50))
    both = skewness([rows, starts])
    assert 0 < both < skewness([starts])
    assert both == pytest.approx((np.sum(rows**3) + np.sum(starts**3)) / (rows @ rows + starts @ starts) ** 1.5)


def test_the_size_of_the_shares_plays_no_part(rng):
    shares = rng.exponential(size=50)
    for size in (2.0**-400, 2.0**-100, 2.0**300):
        assert skewness([size * shares]) == skewness([shares])
        assert largest_skewness([size * shares]) == largest_skewness([shares])


def test_no_shares_have_no_skewness():
    assert skewness([np.zeros(5)]) == largest_skewness([np.zeros(5)]) == 0


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda rng: rng.normal(size=300), Verdict.TRUST),
        (lambda rng: rng.random(300) < 0.3, Verdict.TRUST),
        (lambda rng: rng.exponential(size=2_000), Verdict.TRUST),
        (lambda rng: np.arange(2_000) < 20, Verdict.CAUTION),
        (lambda rng: np.arange(2_000) < 3, Verdict.DO_NOT_TRUST),
    ],
    ids=["normal", "30%", "exponential", "20 of 2,000", "3 of 2,000"],
)
def test_verdicts_on_samples(rng, draw, expected):
    check = tail_check([shares_of(draw(rng).astype(float))])
    assert check.verdict is expected and (check.caution, check.alarm) == (SKEWED, FEW)


def test_skewness_matters_less_in_an_interval_with_room():
    samples = [shares_of((np.arange(2_000) < 20).astype(float))]
    alone, beside = tail_check(samples), tail_check(samples, room=2 * standard_error(samples))
    assert beside.value == pytest.approx(alone.value / 4) and beside.verdict is Verdict.TRUST


def test_a_symmetric_error_has_students_interval_to_the_last_bit(rng):
    samples = [shares_of(rng.normal(size=200))]
    ours, students = (m.interval(1.0, samples, 0.9, 0) for m in (gd.SkewInterval(), gd.NormalInterval()))
    assert ours == students


@pytest.mark.parametrize("sign", [1, -1])
def test_a_skewed_error_has_a_longer_interval_on_the_side_of_its_tail(rng, sign):
    samples = [shares_of(sign * rng.lognormal(0, 1.5, size=200))]
    low, high = gd.SkewInterval().interval(0.0, samples, 0.95, 0)
    students = gd.NormalInterval().interval(0.0, samples, 0.95, 0)
    near, far = (low, high) if sign > 0 else (-high, -low)
    assert near == pytest.approx(students[0]) and far > 1.2 * students[1]


def test_halls_transformation_is_inverted(rng):
    """At the far end, T + gT²/3 + g²T³/27 + g/6 is minus the quantile."""
    samples = [shares_of(rng.pareto(2.0, size=500))]
    _, high = gd.SkewInterval().interval(0.0, samples, 0.95, 0)
    g, at_end = largest_skewness(samples), -high / standard_error(samples)
    transformed = at_end + g * at_end**2 / 3 + g**2 * at_end**3 / 27 + g / 6
    assert transformed == pytest.approx(-stats.t.ppf(0.975, 499))


@pytest.mark.parametrize(
    ("draw", "mean", "least"),
    [
        (lambda rng: rng.lognormal(0, 2, size=300), np.exp(2), 0.9),
        (lambda rng: rng.pareto(1.2, size=300), 5.0, 0.73),
        (lambda rng: (rng.random(1_000) < 0.005).astype(float), 0.005, 0.9),
    ],
    ids=["lognormal", "Pareto", "clicks"],
)
def test_it_covers_more_often_than_students(rng, draw, mean, least):
    inside = {"skew": 0, "student": 0}
    for _ in range(300):
        sample = draw(rng)
        for name, method in (("skew", gd.SkewInterval()), ("student", gd.NormalInterval())):
            low, high = method.interval(sample.mean(), [shares_of(sample)], 0.95, 0)
            inside[name] += low <= mean <= high
    assert inside["skew"] / 300 > least
    assert inside["skew"] > inside["student"] + 0.06 * 300


def heavy_log(rng, rewards):
    """One state, two actions, rewards as given."""
    n = len(rewards)
    return gd.Transitions(np.zeros(n, int), rng.integers(2, size=n), rewards, np.zeros(n, int), initial_states=[0])


def test_a_few_rewards_that_decide_the_value_reach_verdict_interval_and_notes(rng):
    policy = gd.TabularPolicy([[0.3, 0.7]])
    heavy = gd.evaluate(heavy_log(rng, rng.pareto(1.2, size=1_000)), policy, discount=0.9)
    light = gd.evaluate(heavy_log(rng, rng.exponential(size=1_000)), policy, discount=0.9)
    assert str(heavy.verdict) != "trust" and any("skewness of the error" in reason for reason in heavy.reasons)
    assert any("upper end" in note for note in heavy.notes)
    assert heavy.interval is not None and heavy.interval[1] - heavy.value > 1.2 * (heavy.value - heavy.interval[0])
    assert str(light.verdict) == "trust" and not any("upper end" in note for note in light.notes)


def test_an_interval_that_was_asked_for_is_not_replaced(rng):
    data = heavy_log(rng, rng.pareto(1.2, size=1_000))
    found = gd.evaluate(data, gd.TabularPolicy([[0.3, 0.7]]), discount=0.9, interval=gd.NormalInterval())
    assert found.interval is not None
    assert found.interval[1] - found.value == pytest.approx(found.value - found.interval[0])
    assert not any("end is further out" in note for note in found.notes)
