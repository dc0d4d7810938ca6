"""Parts of return distributions: paths through logged rows, and a control variate that may be wrong."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.estimators.returns import doubly_robust
from gradientdice.estimators.returns.points import StepFunction, places, representative
from gradientdice.estimators.returns.table_paths import TablePaths
from problems import ladder


def log(episodes, seed=0):
    mdp, target, behavior, (end,) = ladder(0)
    return mdp, target, mdp.rollout(behavior, episodes, 10, np.random.default_rng(seed), terminal=end)


@pytest.mark.parametrize("discount", [0.0, 0.7, 1.0])
def test_paths_have_the_empirical_mdps_mean_return(discount):
    """Below discount 1 by its exact solution; at 1 by the solution near it, as all episodes are short."""
    _, target, data = log(500)
    problem = gd.Problem(data, gd.TabularPolicy(target))
    near = min(discount, 0.999999)
    values = problem.tabular_solution(near).values
    paths = TablePaths.of(problem, discount)
    for state, value in enumerate(values):
        returns, unfinished = paths.returns(np.full(20_000, state), np.random.default_rng(state))
        assert unfinished == 0 or discount == 0
        assert returns.mean() == pytest.approx(value, abs=4 * returns.std() / np.sqrt(20_000) + 1e-5)


def test_a_first_action_is_taken():
    mdp, target, data = log(500)
    paths = TablePaths.of(gd.Problem(data, gd.TabularPolicy(target)), 0.0)
    for action in range(2):
        returns, _ = paths.returns(np.zeros(10, dtype=int), np.random.default_rng(0), np.full(10, action))
        np.testing.assert_allclose(returns, mdp.reward[0, action])


def test_a_wrong_model_does_not_bias_the_doubly_robust_function(monkeypatch):
    """Returns that are pure noise in place of the model's: the mean over 40 logs is still right."""
    mdp, target, big = log(50_000, seed=99)
    policy = gd.TabularPolicy(target)
    # The truth, by a log so large that its noise does not matter.
    truth = gd.return_distribution(big, policy, 1.0, method="weighted")
    noise = np.random.default_rng(5)

    def nonsense(problem, discount, used, episodes, seed):
        return doubly_robust._Returns(np.sort(noise.normal(size=(6, 50)), axis=1), target[:3])

    monkeypatch.setattr(doubly_robust._Returns, "of", nonsense)
    at = [truth.quantile(level) + 1e-6 for level in (0.3, 0.6)]
    found = []
    for seed in range(40):
        _, _, data = log(300, seed)
        found.append(gd.return_distribution(data, policy, 1.0, method="doubly robust", seed=seed).cdf(at))
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(40)
    assert (np.abs(mean - truth.cdf(at)) < 4 * error + 0.005).all()


def test_measures_of_a_step_function():
    function = StepFunction(np.array([-2.0, 0.0, 1.0]), np.array([0.1, 0.6, 1.0]))
    assert function.mean == pytest.approx(0.2) and function.variance == pytest.approx(0.8 - 0.04)
    assert [function.quantile(level) for level in (0.05, 0.1, 0.11, 0.6, 1.0)] == [-2, -2, 0, 0, 1]
    assert function.cvar(0.2) == pytest.approx(-1.0) and function.cvar(1.0) == pytest.approx(0.2)


def test_points_that_stand_for_many_keep_the_mean():
    rng = np.random.default_rng(0)
    returns, weights = rng.normal(size=5000), rng.random(5000)
    points = representative(returns, weights)
    at = np.bincount(places(returns, points), weights, minlength=len(points)) / weights.sum()
    assert at @ points == pytest.approx(np.average(returns, weights=weights), abs=1e-3)
