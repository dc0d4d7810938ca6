"""MAGIC: the returns of the paper, and the blend that weighs their noise against their bias."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import gradientdice as gd
from gradientdice.estimators.behavior import Episodes, importance_ratios
from gradientdice.estimators.trajectory.magic import simplex_minimum
from gradientdice.estimators.trajectory.step_weights import StepWeights
from gradientdice.problem.folds import Folds
from problems import known, ladder, leak, loop, rolled, single
from reference.trajectories import fold_q, j_step_returns

PROBLEMS = [loop, ladder, leak, single]


def answer(estimator, data, target, functions=None, seed=0):
    return estimator.answer(gd.Problem(data, gd.TabularPolicy(target), functions or gd.Tabular(*target.shape), seed))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_magic_blends_the_returns_of_the_paper(problem, monkeypatch):
    """Each return alone, by putting the blend where it is."""
    _, target, _, _ = problem()
    data = rolled(problem(), 60, 4, seed=2)
    folds = Folds.create(data, 4, 0)
    returns = j_step_returns(data, target, 0.9, folds, fold_q(data, target, 0.9, folds, 2))
    for number, value in enumerate(returns):
        monkeypatch.setattr(
            "gradientdice.estimators.trajectory.magic.simplex_minimum", lambda m, k=number: np.eye(len(m))[k]
        )
        found = answer(gd.MAGIC(0.9), data, target)
        assert found.value == pytest.approx(value, rel=1e-9)
        assert (known(found.ratio)[Episodes.of("", data).step >= number] == 0).all()


class TestMagicBlend:
    def test_minimum_over_the_simplex(self):
        rng = np.random.default_rng(0)
        for size in (1, 2, 5, 12):
            root = rng.normal(size=(size, size)) + 1.0
            matrix = root.T @ root * 10.0 ** rng.integers(-8, 8)
            x = simplex_minimum(matrix)
            assert (x >= 0).all() and x.sum() == pytest.approx(1)
            scaled = matrix / np.trace(matrix)
            best = min(
                float(
                    minimize(
                        lambda z, m=scaled: (s := np.exp(z - z.max()) / np.exp(z - z.max()).sum()) @ m @ s, start
                    ).fun
                )
                for start in rng.normal(size=(5, size))
            )
            assert x @ scaled @ x <= best + 1e-9
        # Returns whose variances differ by many orders, as those of long products do.
        for seed in range(20):
            steps = np.random.default_rng(seed).normal(size=(200, 15)) * np.geomspace(1e-3, 1e3, 15)
            matrix = np.cov(np.cumsum(steps, axis=1).T)
            x = simplex_minimum(matrix)
            gradient = matrix @ x
            assert gradient.min() >= x @ gradient * (1 - 1e-5)
        assert simplex_minimum(np.zeros((3, 3))).tolist() == [0, 0, 1]
        assert simplex_minimum(np.diag([1.0, 0.0])).tolist() == [0, 1]

    def test_covariance_and_bootstrap_are_those_of_simulated_logs(self):
        """Ω against the covariance of the returns over logs with the same Q; the bootstrap against WDR's own spread."""
        from gradientdice.estimators.trajectory import magic

        problem = leak()
        _, target, _, _ = problem
        q = np.random.default_rng(1).normal(size=(4, 2))
        returns, covariances, spreads = [], [], []
        for seed in range(300):
            data = rolled(problem, 100, 4, seed)
            weights, scores = _with_q(data, target, q)
            lengths = np.arange(5)
            returns.append(magic.step_returns(weights, scores, lengths))
            covariances.append(magic.returns_covariance(weights, scores, lengths, data.units))
            if seed < 20:
                spreads.append(magic.resampled_wdr(weights, scores, 200, np.random.default_rng(seed), data.units).std())
        truth = np.cov(np.array(returns).T)
        np.testing.assert_allclose(np.mean(covariances, axis=0), truth, atol=0.2 * truth.max())
        assert np.mean(spreads) == pytest.approx(np.sqrt(truth[-1, -1]), rel=0.15)

    def test_leans_on_a_right_model_and_leaves_a_wrong_one(self):
        mdp, target, behavior, terminal = leak()
        mdp = gd.mdp.TabularMDP(mdp.transition, np.where(mdp.reward == 0, 0, mdp.reward + 3), mdp.initial)
        data = rolled((mdp, target, behavior, terminal), 2000, 5, 0)
        constant = gd.LinearFeatures(lambda states, actions: np.ones((len(states), 1)))
        right, wrong = answer(gd.MAGIC(0.9), data, target), answer(gd.MAGIC(0.9), data, target, constant)
        model = {True: _model_share(right), False: _model_share(wrong)}
        assert model[True] > 0.5 and model[False] < 0.05
        assert abs(wrong.value - mdp.value(target, 0.9)) < 0.3 * abs(
            gd.LSTDQ(0.9).answer(gd.Problem(data, gd.TabularPolicy(target), constant, 0)).value - mdp.value(target, 0.9)
        )

    def test_few_lengths_of_a_long_horizon(self):
        _, target, _, _ = loop()
        data = rolled(loop(), 200, 60, 0)
        few, all_of_them = (answer(gd.MAGIC(0.9, returns=count), data, target).value for count in (8, 61))
        assert few == pytest.approx(all_of_them, abs=0.02)


def _model_share(found):
    return float(found.notes[-1].split("gives ")[1].split(" to")[0])


def _with_q(data: gd.Transitions, target: np.ndarray, q: np.ndarray) -> tuple[StepWeights, Any]:
    """Step weights, and something with the scores of a fixed Q in the place of a fitted one."""
    from types import SimpleNamespace

    episodes = Episodes.of("", data)
    ratios = importance_ratios("", data, gd.TabularPolicy(target), None)
    weights = StepWeights.of("", 0.9, episodes, ratios, normalised=True)
    v = np.sum(target * q, axis=1)
    after = np.where(known(data.terminated), 0.0, v[data.next_states])
    residual = data.rewards + 0.9 * after - q[data.states, data.actions]
    return weights, SimpleNamespace(first_values=v[data.states[episodes.first]], residual=residual)
