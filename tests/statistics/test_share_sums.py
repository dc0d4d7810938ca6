"""Sums of powers say of shares what the shares themselves say."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.statistics.intervals import degrees_of_freedom, largest_skewness, skewness, standard_error, tail_check
from gradientdice.statistics.shares import ShareSums

UNIT = 2.0**-9


def summed(shares: np.ndarray, parts: int = 3) -> ShareSums:
    pieces = [ShareSums.of(piece / UNIT, UNIT) for piece in np.array_split(shares, parts)]
    return pieces[0] + pieces[1] + pieces[2]


@pytest.fixture
def shares() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [(rng.pareto(3.0, size=400) - 0.4) / 400, rng.normal(size=50) / 200]


@pytest.mark.parametrize("figure", [standard_error, degrees_of_freedom, skewness, largest_skewness])
def test_figures_of_sums_are_those_of_the_shares(shares, figure):
    assert figure([summed(part) for part in shares]) == pytest.approx(figure(shares), rel=1e-11)


@pytest.mark.parametrize("method", [gd.SkewInterval(), gd.NormalInterval()])
def test_intervals_of_sums_are_those_of_the_shares(shares, method):
    found = method.interval(1.0, [summed(part) for part in shares], 0.95, 0)
    np.testing.assert_allclose(found, method.interval(1.0, shares, 0.95, 0), rtol=1e-12)


def test_copies_count_as_often_as_they_say():
    values, copies = np.array([-0.5, 0.25, 2.0]), np.array([4.0, 2.0, 1.0])
    each = np.repeat(values, copies.astype(int))
    np.testing.assert_array_equal(ShareSums.of(values, 1.0, copies).powers, ShareSums.of(each, 1.0).powers)
    assert len(ShareSums.of(values, 1.0, copies)) == 7


@pytest.mark.parametrize("size", [1e-80, 1e60])
def test_the_size_of_the_shares_does_not_matter(shares, size):
    unit = 2.0 ** np.frexp(size)[1]
    tiny = [ShareSums.of(part * size / unit, unit) for part in shares]
    assert tail_check(tiny).value == pytest.approx(tail_check(shares).value, rel=1e-9)


@pytest.mark.parametrize("method", [gd.BootstrapInterval(), gd.EmpiricalLikelihood()])
def test_methods_that_need_every_share_say_so(shares, method):
    with pytest.raises(gd.InputError, match="SkewInterval"):
        method.interval(1.0, [summed(shares[0])], 0.95, 0)
