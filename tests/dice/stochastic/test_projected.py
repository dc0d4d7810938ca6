"""Algorithm 1: its balls, its average, its exact optimality gap."""

import numpy as np
import pytest
from scipy.optimize import minimize

import gradientdice as gd
from conftest import random_problem
from dice.stochastic.small import table_log
from gradientdice.dice.optimality import SaddleProblem, maximise_concave
from gradientdice.dice.stochastic.functions import LinearClass
from gradientdice.dice.stochastic.learner import replay
from gradientdice.dice.stochastic.setup import RatioError
from gradientdice.dice.stochastic.sources import MDPSource


def setting(discount=0.9, ridge=0.0):
    mdp, target, data_dist = random_problem(0, states=4)
    source = MDPSource.create(mdp, target, data_dist, None)
    recorder = RatioError.create(None, mdp.ratio(target, discount, data_dist).ravel())
    return gd.GradientDICE(discount, ridge=ridge), source, recorder, gd.Moments.exact(mdp, target, np.eye(8), data_dist)


@pytest.mark.parametrize("seed", range(8))
def test_trust_region_maximum_equals_a_general_optimiser(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(5, rng.integers(1, 6)))
    quadratic, linear, radius = root @ root.T, rng.normal(size=5), rng.uniform(0.1, 3)
    constraint = {"type": "ineq", "fun": lambda z: radius**2 - z @ z}
    best = minimize(lambda z: 0.5 * z @ quadratic @ z - linear @ z, np.zeros(5), constraints=constraint, tol=1e-12)
    assert maximise_concave(quadratic, linear, radius) == pytest.approx(-best.fun, abs=1e-6)


def test_gap_is_zero_at_the_saddle_point_and_positive_elsewhere(rng):
    for discount, ridge in ((0.9, 0.0), (1.0, 0.1)):
        estimator, _, _, moments = setting(discount, ridge)
        solution = gd.solve(estimator, moments)
        problem = SaddleProblem(estimator, moments, 10.0, 10.0)
        point = (solution.ratio_params, solution.critic_params, solution.norm_multiplier)
        assert problem.gap(*point) == pytest.approx(0, abs=1e-9)
        for _ in range(5):
            moved = (point[0] + 0.1 * rng.normal(size=8), point[1] + 0.1 * rng.normal(size=8), point[2])
            assert problem.gap(*moved) > 1e-4


def test_equals_algorithm_1_written_out():
    estimator, source, recorder, moments = setting(0.9, ridge=0.02)
    solver = gd.ProjectedPrimalDual(400, radius=0.9, learning_rate=0.2, record_every=100)
    solution = solver.solve(estimator, source, recorder, moments, seed=1)
    plan = gd.PrimalDual(400, 0.2, 1, 100).plan(estimator, LinearClass(8))
    x, w, y, total_w, total_y = np.eye(8), np.zeros(8), np.zeros(9), np.zeros(8), np.zeros(9)
    hits = 0
    for pair, following, initial in np.asarray(replay(plan, source, 1)):
        d = x[pair] - 0.9 * x[following]
        g1 = np.zeros((9, 9))
        g1[:8, :8], g1[8, 8] = -np.outer(x[pair], x[pair]), -1.0
        g2 = np.vstack([-np.outer(d, x[pair]), x[pair]])
        g3 = np.hstack([np.outer(x[pair], d), -x[pair][:, None]])
        g5 = np.append(0.1 * x[initial], -1.0)
        new_y, new_w = y + 0.2 * (g1 @ y + g2 @ w + g5), w + 0.2 * (g3 @ y - 0.02 * w)
        hits += np.linalg.norm(new_w) > 0.9
        y, w = new_y * 0.9 / max(0.9, np.linalg.norm(new_y)), new_w * 0.9 / max(0.9, np.linalg.norm(new_w))
        total_w, total_y = total_w + w, total_y + y
    assert hits > 10, "the ball never bound: this test would not see the projection"
    np.testing.assert_allclose(solution.ratio_params, total_w / 400, atol=1e-5)
    np.testing.assert_allclose(np.append(solution.critic_params, solution.norm_multiplier), total_y / 400, atol=1e-5)
    assert solution.status is gd.Status.OUTSIDE_BALL


@pytest.mark.slow
def test_default_balls_hold_the_saddle_point_and_the_gap_shrinks():
    estimator, source, recorder, moments = setting()
    few, many = (gd.ProjectedPrimalDual(n).solve(estimator, source, recorder, moments) for n in (1_000, 100_000))
    assert few.status.ok and many.status.ok
    assert many.stats["optimality_gap"] < 0.3 * few.stats["optimality_gap"]
    assert many.stats["ratio_radius"] > np.linalg.norm(gd.solve(estimator, moments).ratio_params)


def test_other_estimators_are_refused():
    _, source, recorder, moments = setting()
    with pytest.raises(gd.InputError, match="for GradientDICE, not GenDICE"):
        gd.ProjectedPrimalDual(10).solve(gd.GenDICE(0.9), source, recorder, moments)


def test_what_it_cannot_do_is_refused_by_name(tmp_path):
    data, policy = table_log(300)
    solver = gd.ProjectedPrimalDual(100)
    with pytest.raises(gd.InputError, match="checkpoint="):
        gd.evaluate(data, policy, gd.GradientDICE(0.9), solver=solver, checkpoint=tmp_path)
    with pytest.raises(gd.InputError, match="with networks use PrimalDual"):
        gd.evaluate(data, policy, gd.GradientDICE(0.9), functions=gd.MLP((8,)), solver=solver)
