"""How much misfit widens an interval."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.effort import Effort
from gradientdice.estimators.doubly_robust.allowance import lacking_ratio, unexplained_share
from gradientdice.estimators.doubly_robust.search import FunctionSearch, searching
from gradientdice.inference.room import margin
from problems import known


def test_a_loss_within_its_noise_allows_for_nothing():
    assert lacking_ratio(0.01, 0.01, 1.0) == lacking_ratio(-0.02, 0.01, 1.0) == lacking_ratio(0.0, 0.0, 1.0) == 0


def test_it_scales_with_the_mass_on_the_rows_and_the_root_of_what_noise_does_not_explain():
    whole = lacking_ratio(0.02, 0.01, 1.0)
    assert 0 < lacking_ratio(0.02, 0.01, 0.01) == pytest.approx(2 * 0.01 * whole)
    assert lacking_ratio(0.08, 0.04, 1.0) == pytest.approx(2 * whole)


def test_a_ratio_with_a_significant_loss_is_not_believed_about_its_mass():
    believed = lacking_ratio(0.2, 0.1, 0.2) / 2
    assert lacking_ratio(0.2, 0.1, -0.2) == pytest.approx(5 * believed), "no ratio is negative"
    significant = lacking_ratio(0.101, 0.001, 0.2)
    assert significant == pytest.approx(5 * believed), "at most all of it"


def test_the_share_of_the_way_to_another_q():
    """All of it where held-out rows cannot tell the two apart, less the surer they are."""
    assert unexplained_share(0.0, 0.04, 0.01) == unexplained_share(0.5, 0.0, 0.5) == 1
    assert unexplained_share(0.0, 0.01, 1.0) == pytest.approx(0.1)
    assert unexplained_share(-0.5, 0.01, 1.0) == pytest.approx(0.1)


def test_the_margin_grows_with_the_confidence():
    few, usual, many = (margin(0.04, confidence) for confidence in (0.5, 0.95, 0.999))
    assert 0 < few < usual < many
    assert usual / few == pytest.approx(1.95996 / 0.67449, rel=1e-4)


def test_the_interval_of_the_default_depends_on_the_confidence_through_it():
    rng = np.random.default_rng(0)
    states = rng.uniform(-1, 1, size=(1000, 2))
    following = np.clip(states + 0.1 * rng.normal(size=states.shape), -1, 1)
    rewards = np.sign(np.sin(9 * states[:, 0]))  # jumps, which smooth features miss
    data = gd.Transitions(states, rng.integers(0, 2, 1000), rewards, following, initial_states=states[:50])
    policy = gd.DiscretePolicy(lambda states: np.tile([0.3, 0.7], (len(states), 1)), 2)
    problem = gd.Problem(data, policy, search=searching(0.9), effort=Effort.QUICK)
    search = problem.chosen
    assert isinstance(search, FunctionSearch) and search.allowance(0.8) > 0
    assert search.allowance(0.99) == pytest.approx(search.allowance(0.8) * 2.5758 / 1.2816, rel=1e-4)
    assert f"widened by {search.allowance(0.99):.2g}" in " ".join(search.notes(0.99))


def test_a_small_value_behind_an_end_has_a_small_interval():
    """Nine in ten thousand of the target's steps lie on the rows: errors there count for as little."""
    rng = np.random.default_rng(0)
    states = rng.uniform(-1, 1, size=(1500, 1))
    actions = rng.integers(0, 2, size=1500)
    following = states + 0.3 * (2 * actions[:, None] - 1) + 0.1 * rng.normal(size=states.shape)
    ended = np.abs(following[:, 0]) > 0.5
    data = gd.Transitions(states, actions, np.sin(5 * states[:, 0]), following, terminated=ended,
                          initial_states=rng.uniform(-0.2, 0.2, size=(200, 1)))  # fmt: skip
    policy = gd.DiscretePolicy(lambda states: np.tile([0.3, 0.7], (len(states), 1)), 2)
    low, high = known(gd.evaluate(data, policy, discount=0.999, effort="quick").interval)
    assert high - low < 0.01 and high - low < 0.02 * np.ptp(data.rewards)
