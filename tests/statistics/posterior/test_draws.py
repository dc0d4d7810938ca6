"""Draws of the Bayesian bootstrap are what the closed form gives with the same weights."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.statistics.posterior.features import FeatureDraws
from gradientdice.statistics.posterior.table import TableDraws
from gradientdice.statistics.posterior.units import Drawn, WeightedCells
from problems import known, ladder, loop, random_problem


def weighted(data, rows, starts=None):
    """The log with rows that count more or less; given starts are repeated, as they count once each."""
    if starts is None:
        return replace(data, weights=rows)
    return replace(data, weights=rows, initial_states=np.repeat(data.initial_states, starts))


def trajectories(ending):
    if ending:
        mdp, target, behavior, end = ladder(3)
        return mdp.rollout(behavior, 60, 10, np.random.default_rng(0), terminal=end[0] if end else None), target
    mdp, target, behavior, _ = loop(1)
    return mdp.rollout(behavior, 60, 8, np.random.default_rng(0), noise=1.0), target


@pytest.mark.parametrize("ending", [True, False])
@pytest.mark.parametrize("discount", [0.0, 0.9, 1.0])
def test_a_tables_draw_is_the_closed_form_with_these_weights(ending, discount):
    data, target = trajectories(ending)
    problem = gd.Problem(data, gd.TabularPolicy(target))
    cells = WeightedCells.of(data)
    assert len(cells.weights.rows) == 60
    drawn = cells.weights.draw(5, np.random.default_rng(1))
    values = TableDraws.of(problem, discount, cells).values(drawn)
    for number in range(5):
        log = weighted(data, drawn.rows[number][data.units.rows])
        expected = gd.evaluate(log, gd.TabularPolicy(target), gd.GradientDICE(discount))
        np.testing.assert_allclose(values[number], expected.uncut_value or expected.value, atol=1e-9)


def test_rows_that_are_alike_are_drawn_together_and_starts_apart():
    mdp, target, dist = random_problem(2)
    data = mdp.sample(400, dist, np.random.default_rng(0))
    cells = WeightedCells.of(data)
    distinct = {(s, a, t) for s, a, t in zip(data.states, data.actions, data.next_states, strict=True)}
    assert len(cells.first) == len(distinct) and cells.weights.rows.sum() == 400
    starts = known(cells.weights.starts)
    assert starts.sum() == 400 and len(starts) == len(np.unique(known(data.initial_states)))
    # Whole numbers as weights are copies: of rows by cell, and of starts.
    rng = np.random.default_rng(3)
    rows, begun = rng.integers(1, 4, (1, len(cells.first))), rng.integers(1, 4, (1, len(starts)))
    draws = TableDraws.of(gd.Problem(data, gd.TabularPolicy(target)), 0.8, cells)
    value = draws.values(Drawn(rows.astype(float), begun.astype(float)))
    again = known(cells.first_start)
    log = gd.Transitions(
        *(field[cells.first] for field in (data.states, data.actions, data.rewards, data.next_states)),
        initial_states=np.repeat(known(data.initial_states)[again], begun[0]),
        weights=rows[0],
    )
    expected = gd.evaluate(log, gd.TabularPolicy(target), gd.LSTDQ(0.8))
    np.testing.assert_allclose(value, expected.uncut_value or expected.value, atol=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("ending", [True, False])
@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_a_draw_with_features_is_the_closed_form_with_these_weights(intercept, ending, discount):
    data, target = trajectories(ending)
    size = int(max(data.states.max(), data.next_states.max())) + 1
    table = np.random.default_rng(5).normal(size=(size, 2, 4))
    if intercept:
        table[..., 0] = 1.0
    functions = gd.LinearFeatures(lambda states, actions: table[states, actions])
    problem = gd.Problem(data, gd.TabularPolicy(target), functions)
    draws = FeatureDraws.of(problem, discount)
    drawn = draws.weights.draw(5, np.random.default_rng(1))
    values = draws.values(drawn)
    for number in range(5):
        log = weighted(data, drawn.rows[number][data.units.rows])
        answer = gd.GradientDICE(discount).answer(gd.Problem(log, gd.TabularPolicy(target), functions))
        np.testing.assert_allclose(values[number], answer.value, rtol=1e-7, atol=1e-8)


def test_features_with_given_starts_weight_the_starts_too():
    mdp, target, dist = random_problem(2)
    data = mdp.sample(200, dist, np.random.default_rng(0))
    table = np.random.default_rng(5).normal(size=(5, 2, 3))
    table[..., 0] = 1.0
    functions = gd.LinearFeatures(lambda states, actions: table[states, actions])
    draws = FeatureDraws.of(gd.Problem(data, gd.TabularPolicy(target), functions), 0.7)
    rng = np.random.default_rng(1)
    rows, starts = rng.integers(1, 4, 200), rng.integers(0, 3, 200)
    (value,) = draws.values(Drawn(rows[None].astype(float), starts[None].astype(float)))
    log = weighted(data, rows.astype(float), starts)
    answer = gd.GradientDICE(0.7).answer(gd.Problem(log, gd.TabularPolicy(target), functions))
    np.testing.assert_allclose(value, answer.value, rtol=1e-8)
