"""What widens an interval beside sampling noise, in a value and in a difference."""

import numpy as np
import pytest

from gradientdice.statistics.room import APART, Room, UnseenStarts, margin
from gradientdice.statistics.simultaneous import covariance, joint_confidence
from gradientdice.statistics.sources import ErrorSources
from gradientdice.statistics.unlogged import UnseenOutcomes


def sources(units: np.ndarray, room: Room | None = None, starts: np.ndarray | None = None) -> ErrorSources:
    return ErrorSources(0.0, units, starts, room or Room(), "log")


def test_distances_to_other_answers_are_subtracted_with_their_signs():
    one, other = (Room(APART * 0.3, (0.3, 0.1)), Room(APART * 0.2, (0.2, -0.1)))
    found = one.minus(other, 0.0)
    assert found.distances == pytest.approx((0.1, 0.2)) and found.misfit == pytest.approx(APART * 0.2)
    assert found.sides(0.95) == pytest.approx((margin(APART * 0.2, 0.95),) * 2)


def test_misfit_without_signs_is_as_correlated_as_the_sampling_errors():
    one, other = Room(0.3), Room(0.4, (0.1,))
    assert one.minus(other, 0.0).misfit == pytest.approx(0.5)
    assert one.minus(other, 1.0).misfit == pytest.approx(0.1)
    assert one.minus(Room(), 0.7).misfit == pytest.approx(0.3)


def test_bounds_add_up_and_sides_change_places():
    outcomes = UnseenOutcomes(1.0, 100.0, 0.0)
    one, other = Room(steps=0.1, outcomes=(outcomes,), spanned=(0.1, 0.0)), Room(steps=0.2, spanned=(0.0, 0.3))
    below, above = one.minus(other, 0.5).sides(0.95)
    even = 0.3 + outcomes.error(0.95)
    assert (below, above) == pytest.approx((even + 0.4, even))
    wider, _ = one.minus(other, 0.5).sides(0.99)
    assert wider > below


def test_unseen_starts_are_the_same_for_both():
    one, other = UnseenStarts(10, np.array([0.0, 1.0, -2.0])), UnseenStarts(10, np.array([0.0, 0.8, -2.5]))
    unseen = 1 - 0.05**0.1
    assert Room(starts=one).sides(0.95) == pytest.approx((2 * unseen, unseen))
    assert Room(starts=one).minus(Room(starts=other), 0.0).sides(0.95) == pytest.approx((0.0, 0.5 * unseen))
    assert Room().minus(Room(starts=one), 0.0).sides(0.95) == pytest.approx((unseen, 2 * unseen))


def test_an_answer_less_itself_has_no_room():
    one = Room(0.3, steps=0.2, answer="same")
    assert one.minus(one, 1.0).sides(0.95) == (0, 0)
    assert one.minus(Room(0.3, steps=0.2), 1.0).sides(0.95) == pytest.approx((0.4, 0.4))


def test_intervals_that_hold_together():
    """Independent errors need Šidák's level; one error, or the same one twice, needs no more than its own."""
    draw = np.random.default_rng(0)
    own = sources(draw.normal(size=500))
    assert joint_confidence([own], 0.95) == 0.95 and joint_confidence([own], 0.95, one_sided=True) == pytest.approx(0.9)
    assert joint_confidence([own, sources(np.zeros(500))], 0.95) == 0.95
    assert joint_confidence([own, own], 0.95) == pytest.approx(0.95, abs=0.003)
    shares = np.linalg.qr(draw.normal(size=(500, 4)))[0].T
    independent = [sources(row) for row in shares - shares.mean(axis=1, keepdims=True)]
    assert joint_confidence(independent, 0.95) == pytest.approx(0.95 ** (1 / 4), abs=0.003)


def test_multipliers_have_the_covariance_of_the_shares():
    """The joint normal is the distribution of Σ g_u s_u with standard normal g: checked by drawing the g."""
    draw = np.random.default_rng(1)
    units, starts = draw.normal(size=(3, 40)), draw.normal(size=(3, 10))
    found = covariance([sources(row, starts=first) for row, first in zip(units, starts, strict=True)])
    total = np.zeros((20_000, 3))
    for shares in (units, starts):
        count = shares.shape[1]
        centred = (shares - shares.mean(axis=1, keepdims=True)) * np.sqrt(count / (count - 1))
        total += draw.normal(size=(20_000, count)) @ centred.T
    assert np.cov(total.T) == pytest.approx(found, rel=0.1, abs=1.0)


def test_causes_add_up_to_the_mean_of_both_sides():
    starts = UnseenStarts(10, np.array([0.0, 1.0, -2.0]))
    room = Room(0.1, steps=0.2, outcomes=(UnseenOutcomes(1.0, 100.0, 0.0),), starts=starts, spanned=(0.1, 0.3))
    for confidence in (0.9, 0.99):
        causes = room.causes(confidence)
        assert len(causes) == 5 and sum(causes.values()) == pytest.approx(sum(room.sides(confidence)) / 2)
    assert Room().causes(0.95) == {} and list(Room(steps=0.1).causes(0.95)) == ["steps that were never logged"]
