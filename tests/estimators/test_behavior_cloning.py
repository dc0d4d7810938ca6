"""Behaviour cloning: counts for a table, a fit for vectors."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.estimators.behavior import importance_ratios
from problems import leak, loop, rolled

HALF = gd.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), 2)


def test_a_table_is_counted():
    data = rolled(loop(), 50, 5, 0)
    weights = np.random.default_rng(0).uniform(size=len(data))
    for smoothing in (0.0, 0.7):
        found = gd.BehaviorCloning(smoothing).log_probabilities(replace(data, weights=weights), HALF)
        for row in (0, 3, 77):
            there = data.states == data.states[row]
            same = there & (data.actions == data.actions[row])
            expected = (weights[same].sum() + smoothing) / (weights[there].sum() + 2 * smoothing)
            assert np.exp(found[row]) == pytest.approx(expected, rel=1e-12)
    ignored = gd.BehaviorCloning().log_probabilities(replace(data, weights=(data.actions == 0) * 1.0), HALF)
    assert np.isfinite(ignored).all()


def test_vectors_are_fitted():
    rng = np.random.default_rng(0)
    errors = []
    for n in (300, 4000):
        states = rng.normal(size=(n, 2))
        logits = np.column_stack([np.sin(states[:, 0]), 0.5 * states[:, 1], np.zeros(n)])
        probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        actions = (probabilities.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        data = gd.Transitions(states, actions, np.zeros(n), states)
        policy = gd.DiscretePolicy(lambda s: np.full((len(s), 3), 1 / 3), 3)
        found = np.exp(gd.BehaviorCloning(ridge=1e-3).log_probabilities(data, policy))
        errors.append(np.abs(found - probabilities[np.arange(n), actions]).mean())
    assert errors[1] < 0.03 and errors[1] < 0.7 * errors[0]


def test_the_fit_to_vectors_is_that_to_a_table_where_they_are_the_same():
    """Few distinct states and enough features: logistic regression reproduces the counts as the ridge goes to 0."""
    data = rolled(loop(), 200, 5, 0)
    where = np.array([[-1.0, 0.0], [0.5, 1.0], [1.0, -1.0]])
    moved = replace(data, states=where[data.states], next_states=where[data.next_states])
    counted = gd.BehaviorCloning().log_probabilities(data, HALF)
    fitted = gd.BehaviorCloning(ridge=1e-9).log_probabilities(moved, HALF)
    np.testing.assert_allclose(fitted, counted, atol=1e-3)
    doubled = replace(moved, weights=np.full(len(data), 2.0))
    np.testing.assert_allclose(gd.BehaviorCloning(ridge=1e-9).log_probabilities(doubled, HALF), fitted, atol=1e-6)


def test_estimated_probabilities_take_noise_away():
    """IS with counted frequencies has less variance than with the true ones."""
    problem = leak()
    _, target, _, _ = problem
    given, cloned = [], []
    for seed in range(150):
        data, policy = rolled(problem, 100, 4, seed), gd.TabularPolicy(target)
        given.append(gd.PDIS(0.9).answer(gd.Problem(data, policy, None, 0)).value)
        unknown = replace(data, behavior_log_probs=None)
        cloned.append(gd.PDIS(0.9, gd.BehaviorCloning()).answer(gd.Problem(unknown, policy, None, 0)).value)
    assert np.std(cloned) < 0.9 * np.std(given)


def test_refusals():
    for field in ("smoothing", "ridge"):
        for bad in (-1.0, float("nan")):
            with pytest.raises(gd.InputError, match=field):
                replace(gd.BehaviorCloning(), **{field: bad})
    number: Any = 3
    with pytest.raises(gd.InputError, match="features"):
        gd.BehaviorCloning(features=number)
    data = replace(rolled(loop(), 5, 5, 0), actions=np.zeros((25, 1)))
    with pytest.raises(gd.InputError, match="discrete actions"):
        gd.BehaviorCloning().log_probabilities(data, HALF)
    with pytest.raises(gd.InputError, match="actions must lie in 0 to 1; row 0 is 2"):
        importance_ratios("IS", replace(data, actions=np.full(25, 2)), HALF, None)
    logged = gd.LoggedPolicy(next_probabilities=np.full((25, 2), 0.5))
    with pytest.raises(gd.InputError, match="LoggedPolicy"):
        importance_ratios("IS", replace(data, actions=np.zeros(25, int)), logged, None)
