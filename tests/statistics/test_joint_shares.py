"""Sums of the shares of several answers give the covariances and samples that the shares themselves give."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.statistics.intervals import SkewInterval, standard_error
from gradientdice.statistics.room import Room
from gradientdice.statistics.shares import NOTHING, JointShares, JointSums
from gradientdice.statistics.simultaneous import covariance
from gradientdice.statistics.sources import ErrorSources, SummedSources

RNG = np.random.default_rng(0)
UNITS, STARTS = RNG.exponential(size=(300, 3)) / 300, RNG.normal(size=(40, 3)) / 100
STARTS[:, 1] = 0.0
PAIRS = ((1, NOTHING), (2, NOTHING), (3, NOTHING), (1, 2), (1, 3), (2, 3))
UNIT = 2.0**-8


def joint(units: np.ndarray = UNITS) -> JointShares:
    return JointShares(tuple(JointSums.of(shares / UNIT, PAIRS, UNIT) for shares in (units, STARTS)))


def sources(column: int) -> tuple[SummedSources, ErrorSources]:
    value, starts = float(column), None if column == 2 else STARTS[:, column - 1]
    return SummedSources(value, JOINT, column, Room()), ErrorSources(value, UNITS[:, column - 1], starts, Room(), "log")


JOINT = joint()
SUMMED, EACH = zip(*(sources(column) for column in (1, 2, 3)), strict=True)


def test_covariances_of_answers_and_of_differences():
    np.testing.assert_allclose(covariance(SUMMED), covariance(EACH), rtol=1e-10)
    one, other = ([own[0].minus(own[2]), own[1].minus(own[2])] for own in (SUMMED, EACH))
    np.testing.assert_allclose(covariance(one), covariance(other), rtol=1e-10)


@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 0), (2, 0), (1, 2)])
def test_the_interval_of_a_difference(first, second):
    found, expected = SUMMED[first].minus(SUMMED[second]), EACH[first].minus(EACH[second])
    assert found.value == expected.value
    ends = [SkewInterval().interval(own.value, own.samples, 0.95, 0) for own in (found, expected)]
    np.testing.assert_allclose(*ends, rtol=1e-11)


def test_an_answer_less_itself_has_no_error():
    assert standard_error(SUMMED[0].minus(SUMMED[0]).samples) == 0
    found = covariance([SUMMED[0].minus(SUMMED[0]), SUMMED[0]])
    np.testing.assert_allclose(found[0], 0, atol=1e-20)


def test_policies_that_are_nearly_alike_keep_their_digits():
    """From products of shares the variance of this difference would be lost: it is 1e-20 of theirs."""
    units = np.array(UNITS)
    units[:, 1] = units[:, 0] * (1 + 1e-10 * RNG.normal(size=300))
    expected = standard_error([units[:, 0] - units[:, 1]])
    together = joint(units)
    apart = SummedSources(0.0, together, 1, Room()).minus(SummedSources(0.0, together, 2, Room()))
    np.testing.assert_allclose(standard_error(apart.samples[:1]), expected, rtol=1e-6)


def test_misfit_is_as_correlated_as_the_sampling_errors():
    rooms = [Room(misfit=0.1), Room(misfit=0.2)]
    found, expected = (
        [type(own)(**{**vars(own), "room": room}) for own, room in zip(kind[:2], rooms, strict=True)]
        for kind in (SUMMED, EACH)
    )
    np.testing.assert_allclose(
        found[0].minus(found[1]).room.misfit, expected[0].minus(expected[1]).room.misfit, rtol=1e-10
    )


def test_answers_of_other_passes_are_refused():
    with pytest.raises(gd.InputError, match="rank"):
        SUMMED[0].minus(SummedSources(1.0, joint(), 1, Room()))
    with pytest.raises(gd.InputError, match="not scored together"):
        JointSums.of(UNITS, PAIRS[:3]).between(1, 2)
