"""The flow equations with a path of ridges, against plain NumPy and known MDPs."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.dice.ridge_path import ridge_path
from gradientdice.problem.moments import Moments
from problems import known, random_problem

NOTHING = np.zeros(0, dtype=int)


def moments_and_truth(discount):
    mdp, target, data_dist = random_problem(3)
    return Moments.exact(mdp, target, np.eye(10), data_dist), mdp, target, data_dist


@pytest.mark.parametrize("discount", [0.0, 0.9, 1.0])
def test_with_a_tiny_ridge_a_table_has_the_exact_ratio_value_and_q(discount):
    moments, mdp, target, data_dist = moments_and_truth(discount)
    (fit,) = ridge_path(moments, discount, [1e-12], NOTHING)
    np.testing.assert_allclose(fit.ratio.reshape(5, 2), mdp.ratio(target, discount, data_dist), atol=1e-7)
    q = fit.value.reshape(5, 2) + (fit.norm / (1 - discount) if discount < 1 else 0.0)
    v = np.sum(target * q, axis=1)
    residual = mdp.reward + discount * mdp.transition @ v - q - (fit.norm if discount == 1 else 0.0)
    np.testing.assert_allclose(residual, 0, atol=1e-7)
    assert moments.reward @ fit.ratio == pytest.approx(mdp.value(target, discount), abs=1e-8)


def features_log(rng, n=600):
    states = rng.normal(size=(n, 2))
    following = 0.8 * states + 0.3 * rng.normal(size=states.shape)
    data = gd.Transitions(states, rng.integers(0, 2, n), rng.normal(size=n), following, initial_states=states[:60],
                          terminated=rng.random(n) < 0.05)  # fmt: skip
    return data, gd.DiscretePolicy(lambda s: np.tile([0.3, 0.7], (len(s), 1)), 2)


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_the_mean_ratio_is_1_whatever_the_ridge(rng, discount):
    data, policy = features_log(rng)
    moments = gd.Problem(data, policy, gd.RandomFourier(30, (0.2, 1.5))).moments
    free = np.array([0, 31, 62])
    fits = ridge_path(moments, discount, [1e-6, 1e-3, 1e-1, 10.0], free)
    used = moments.for_discount(discount)
    assert [fit.ratio @ used.mean for fit in fits] == pytest.approx([1.0] * 4, abs=1e-9)
    # With the constants free the ratio of a huge ridge is the mean flow, not nothing.
    assert abs(fits[-1].ratio[1:31]).max() < 0.1 * abs(fits[0].ratio[1:31]).max()


def test_a_ridge_is_the_systems_own(rng):
    data, policy = features_log(rng)
    moments = gd.Problem(data, policy, gd.RandomFourier(10, (0.2, 1.5))).moments
    (fit,) = ridge_path(moments, 0.9, [0.01], np.array([0, 11, 22]))
    penalty = 0.01 * np.diag([0.0, *[1.0] * 10, 0.0, *[1.0] * 10, 0.0])
    # The constants' own equation makes E[τ] = 1, so that the plain system has the same solution.
    plain = np.linalg.solve(moments.bellman(0.9) + penalty, 0.1 * known(moments.initial))
    np.testing.assert_allclose(fit.ratio, plain, atol=1e-10)
    value = np.linalg.solve(moments.bellman(0.9).T + penalty, moments.reward)
    rows = gd.Problem(data, policy, gd.RandomFourier(10, (0.2, 1.5))).design.current.matrix(23)
    np.testing.assert_allclose(rows[:-1] @ fit.value + fit.norm / 0.1, rows[:-1] @ value, atol=1e-8)


def test_an_action_that_is_never_logged_nor_taken_does_no_harm(rng):
    data, _ = features_log(rng)
    three = gd.DiscretePolicy(lambda s: np.tile([0.3, 0.7, 0.0], (len(s), 1)), 3)
    two = gd.DiscretePolicy(lambda s: np.tile([0.3, 0.7], (len(s), 1)), 2)
    ratios = []
    for policy, free in ((three, [0, 11, 22, 33]), (two, [0, 11, 22])):
        moments = gd.Problem(data, policy, gd.RandomFourier(10, 0.7)).moments
        (fit,) = ridge_path(moments, 0.9, [1e-3], np.array(free))
        ratios.append(fit.ratio[:22])
    np.testing.assert_allclose(ratios[0], ratios[1], atol=1e-9)


def test_a_singular_system_has_no_solution():
    zeros = Moments(np.zeros((2, 2)), np.zeros((2, 2)), np.zeros(2), np.zeros(2), np.zeros(2))
    assert ridge_path(zeros, 0.9, [1e-3], NOTHING) == []
