"""The closed form: exact on Boyan's Chain, rank-revealing, honest about singular systems."""

import numpy as np
import pytest

import gradientdice as gd
from conftest import TARGET, UNIFORM, random_problem


@pytest.mark.parametrize("discount", [0.1, 0.3, 0.5, 0.7, 0.9, 0.999, 1.0])
@pytest.mark.parametrize("penalty", [0.1, 1.0, np.inf])
def test_boyan_to_ten_digits(discount, penalty):
    mdp = gd.mdp.boyan_chain("continuing" if discount == 1 else "episodic")
    solution = gd.solve(gd.GradientDICE(discount, penalty), gd.Moments.exact(mdp, TARGET, np.eye(26), UNIFORM))
    assert solution.status.ok
    np.testing.assert_allclose(solution.ratio_params, mdp.ratio(TARGET, discount, UNIFORM).ravel(), atol=1e-10)
    assert solution.norm_multiplier == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(solution.critic_params, 0, atol=1e-11)


@pytest.mark.parametrize(
    ("discount", "best", "fixed_point"),
    [
        (0.1, 0.00255, 0.00255),
        (0.3, 0.0359, 0.0362),
        (0.5, 0.189, 0.195),
        (0.7, 0.865, 0.946),
        (0.9, 4.08, 4.92),
        (1.0, 0.099, 0.179),
    ],
)
def test_boyan_linear_fixed_points(discount, best, fixed_point):
    from gradientdice_studies.boyan.analysis import best_fit_error, exact_error

    assert best_fit_error(discount) == pytest.approx(best, rel=0.005)
    assert exact_error("linear", discount) == pytest.approx(fixed_point, rel=0.005)


def test_redundant_features_change_nothing_but_the_rank(problem, rng):
    mdp, target, data_dist = problem
    x = rng.normal(size=(10, 4))
    more = np.column_stack([x, x @ rng.normal(size=(4, 3)), np.zeros(10)])
    plain = gd.solve(gd.GradientDICE(0.9), gd.Moments.exact(mdp, target, x, data_dist))
    padded = gd.solve(gd.GradientDICE(0.9), gd.Moments.exact(mdp, target, more, data_dist))
    assert padded.stats["rank"] == 4 and padded.stats["num_features"] == 8 and padded.status.ok
    np.testing.assert_allclose(more @ padded.ratio_params, x @ plain.ratio_params, atol=1e-8)


def test_rarely_logged_pairs_are_kept():
    """Their share of the data is far below the rank tolerance; scaling saves them."""
    mdp, target, _ = random_problem(0)
    data_dist = np.full((5, 2), 1.0)
    data_dist[2, 1] = 1e-13
    data_dist /= data_dist.sum()
    solution = gd.solve(gd.GradientDICE(0.9), gd.Moments.exact(mdp, target, np.eye(10), data_dist))
    assert solution.stats["rank"] == 10
    np.testing.assert_allclose(solution.ratio_params, mdp.ratio(target, 0.9, data_dist).ravel(), rtol=1e-6)


def test_scaled_features_scale_the_parameters(problem):
    mdp, target, data_dist = problem
    scale = np.geomspace(1e-6, 1e6, 10)
    solution = gd.solve(gd.GradientDICE(0.9), gd.Moments.exact(mdp, target, np.diag(scale), data_dist))
    np.testing.assert_allclose(scale * solution.ratio_params, mdp.ratio(target, 0.9, data_dist).ravel(), atol=1e-9)


def test_ridge_limits(problem):
    """ξ → ∞ sends w to 0; ξ → 0 to the unridged answer."""
    mdp, target, data_dist = problem
    moments = gd.Moments.exact(mdp, target, np.eye(10), data_dist)
    free = gd.solve(gd.GradientDICE(0.9), moments).ratio_params
    np.testing.assert_allclose(gd.solve(gd.GradientDICE(0.9, ridge=1e-12), moments).ratio_params, free, atol=1e-6)
    assert np.abs(gd.solve(gd.GradientDICE(0.9, ridge=1e9), moments).ratio_params).max() < 1e-6


def test_singular_systems_say_so():
    mdp, target, data_dist = random_problem(0)
    moments = gd.Moments.exact(mdp, target, np.eye(10), data_dist)
    solution = gd.solve(gd.GradientDICE(1.0, norm_penalty=0.0), moments)
    assert solution.status is gd.Status.SINGULAR and not solution.status.ok
    assert "Remedies" in solution.status.message and np.isfinite(solution.ratio_params).all()


def test_ill_conditioned_systems_say_so():
    """Two nearly disconnected halves: at discount 1 the flow between them is all that fixes their shares."""
    leak = 1e-9
    transition = np.array([[[1 - leak, leak]], [[leak, 1 - leak]]])
    mdp = gd.mdp.TabularMDP(transition, np.zeros((2, 1)), np.array([0.5, 0.5]))
    moments = gd.Moments.exact(mdp, np.ones((2, 1)), np.eye(2), np.array([[0.3], [0.7]]))
    assert gd.solve(gd.GradientDICE(1.0), moments).status is gd.Status.ILL_CONDITIONED


def test_bad_moments_are_refused(problem):
    from dataclasses import replace

    mdp, target, data_dist = problem
    moments = gd.Moments.exact(mdp, target, np.eye(10), data_dist)
    with pytest.raises(gd.InputError, match="moments.gram has a value that is not finite"):
        gd.solve(gd.GradientDICE(0.9), replace(moments, gram=moments.gram * np.nan))
    with pytest.raises(gd.InputError, match="zero on all of the data"):
        gd.solve(gd.GradientDICE(0.9), replace(moments, gram=moments.gram * 0))
    with pytest.raises(gd.InputError, match="At discount 1"):
        gd.solve(gd.DualDICE(1.0, power=2.0), moments)
