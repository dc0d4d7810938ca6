"""How much the misfit of searched functions widens an interval."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.estimators.doubly_robust.allowance import misfit_allowance
from problems import known, linear_gaussian


def test_it_scales_with_the_mass_on_the_rows_and_the_root_of_the_loss():
    whole = misfit_allowance(0.04, 0.04, 1.0, 0.95)
    assert misfit_allowance(0.04, 0.04, 0.01, 0.95) == pytest.approx(0.01 * whole)
    assert misfit_allowance(0.16, 0.16, 1.0, 0.95) == pytest.approx(2 * whole)


def test_it_grows_with_the_confidence():
    few, usual, many = (misfit_allowance(0.04, 0.01, 1.0, confidence) for confidence in (0.5, 0.95, 0.999))
    assert 0 < few < usual < many
    assert usual / few == pytest.approx(1.95996 / 0.67449, rel=1e-4)


def test_a_loss_below_its_noise_allows_for_the_noise():
    assert misfit_allowance(-0.02, 0.01, 1.0, 0.95) == misfit_allowance(0.01, 0.01, 1.0, 0.95) > 0
    assert misfit_allowance(0.0, 0.0, 1.0, 0.95) == 0


def test_a_ratio_with_a_significant_loss_is_not_believed_about_its_mass():
    believed = misfit_allowance(0.1, 0.1, 0.2, 0.95)
    assert misfit_allowance(0.1, 0.05, 0.2, 0.95) == pytest.approx(2 * believed)
    assert misfit_allowance(0.1, 0.001, 0.2, 0.95) == pytest.approx(5 * believed), "at most all of it"
    assert misfit_allowance(0.1, 0.1, -0.2, 0.95) == pytest.approx(5 * believed), "and no ratio is negative"


def test_the_interval_of_searched_functions_depends_on_the_confidence_through_it():
    data, policy, _ = linear_gaussian(1500, np.random.default_rng(2))
    notes = [gd.evaluate(data, policy, discount=0.9, confidence=c).notes for c in (0.8, 0.99)]
    small, large = (float(known_note(of_one).split("widened by ")[1].split()[0]) for of_one in notes)
    assert large == pytest.approx(small * 2.5758 / 1.2816, rel=0.05)


def known_note(notes):
    return known(next((note for note in notes if "misfit" in note), None))


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
    low, high = known(gd.evaluate(data, policy, discount=0.999).interval)
    assert high - low < 0.01 and high - low < 0.02 * np.ptp(data.rewards)
