"""When a learned model's episodes end."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from gradientdice.default.model.ends import KEPT, MOST_NUMBERS, EndOdds, _chosen, _path, learn_ends, stacked_odds


def learned(following, ended, rng, own=None, weights=None, held_out=None) -> EndOdds:
    count = len(following)
    return learn_ends(
        following,
        ended,
        np.ones(count) if weights is None else weights,
        np.arange(count) // 10,
        np.zeros(count) if own is None else own,
        np.zeros(count, dtype=bool) if held_out is None else held_out,
        rng,
    )


def chances(odds: EndOdds, following, own=0.0) -> np.ndarray:
    return expit(np.asarray(odds(following, np.full(len(following), own)), dtype=np.float64))


def test_an_end_at_a_height_is_learned_sharply_from_a_few(rng):
    states = rng.normal(size=(4000, 3))
    ended = states[:, 1] > 2.6
    assert 10 <= ended.sum() <= 40
    odds = learned(states, ended, rng)
    below, above = np.zeros((2, 3)), np.zeros((2, 3))
    below[:, 1], above[:, 1] = (0.0, 2.2), (3.0, 3.5)
    assert (chances(odds, below) < 0.05).all() and (chances(odds, above) > 0.9).all()


def test_an_end_may_depend_on_products(rng):
    # The height of a tip: cos a + cos(a + b), a quadratic form in cosines and sines.
    angles = rng.uniform(-np.pi, np.pi, size=(3000, 2))
    states = np.column_stack([np.cos(angles), np.sin(angles)])
    height = np.cos(angles[:, 0]) + np.cos(angles.sum(axis=1))
    odds = learned(states, height > 1.0, rng)
    clear = np.abs(height - 1.0) > 0.2
    assert ((chances(odds, states) > 0.5) == (height > 1.0))[clear].mean() > 0.99


def test_chances_are_calibrated_where_ends_are_drawn(rng):
    states = rng.normal(size=(20_000, 2))
    truth = expit(2 * states[:, 0] - 3)
    odds = learned(states, rng.random(20_000) < truth, rng)
    found = chances(odds, states)
    # Of 20,000 rows at most 4,500 are used; those left out are stood for by others.
    assert np.mean(np.abs(found - truth)) < 0.02
    assert found.mean() == pytest.approx(truth.mean(), rel=0.1)


def test_the_networks_own_odds_stand_where_they_are_better(rng):
    states = rng.normal(size=(4000, 2))
    # A chessboard, which no quadratic can tell.
    ended = (np.floor(2 * states).sum(axis=1) % 2 == 0) & (np.abs(states) < 2).all(axis=1)
    own = np.where(ended, 8.0, -8.0)
    held_out = np.arange(4000) >= 3500
    assert learned(states, ended, rng, own, held_out=held_out).own
    assert not learned(states, states[:, 0] > 1, rng, -own, held_out=held_out).own
    few = held_out & ~ended
    few[np.flatnonzero(ended)[-2:]] = True
    assert not learned(states, ended, rng, own, held_out=few).own, "two ends cannot tell"


def test_without_any_end_the_chance_is_small(rng):
    states = rng.normal(size=(1000, 2))
    odds = learned(states, np.zeros(1000, dtype=bool), rng)
    assert chances(odds, states) == pytest.approx(0.5 / 1001, rel=0.01)


def test_newtons_fit_is_the_minimum_that_another_solver_finds(rng):
    x = np.column_stack([rng.normal(size=(500, 3)), np.ones(500)])
    y, mass = (rng.random(500) < expit(x @ [1.0, -2.0, 0.0, -1.0])) * 1.0, rng.uniform(0.5, 2.0, 500)
    ridge = 1e-3

    def objective(theta):
        odds = x @ theta
        penalty = np.append(np.full(3, ridge), 1e-9) * mass.sum()
        return mass @ (np.logaddexp(0, odds) - y * odds) + 0.5 * penalty @ theta**2

    found = _path(x, y, mass, [1e-1, ridge])[-1]
    assert found == pytest.approx(minimize(objective, np.zeros(4), method="BFGS").x, abs=1e-3)


def test_rows_that_stand_for_others_have_their_weight(rng):
    states, weights = rng.normal(size=(12_000, 2)), rng.uniform(0.5, 1.5, 12_000)
    ended = states[:, 0] > 0.5
    weights[:100] = 0.0
    rows, mass = _chosen(states, ended, weights, rng)
    assert len(rows) == 3 * KEPT and len(np.unique(rows)) == len(rows) and (weights[rows] > 0).all()
    for kind in (ended, ~ended):
        assert mass[kind[rows]].sum() == pytest.approx(weights[kind].sum())
    # Rows next to the boundary are all there.
    near = ~ended & (states[:, 0] > 0.4) & (weights > 0)
    assert np.isin(np.flatnonzero(near), rows).all()


def test_odds_of_folds_are_repeated_for_their_networks(rng):
    states = rng.normal(size=(500, 2))
    odds = [learned(states, states[:, 0] > edge, rng) for edge in (0.5, 1.5)]
    both = stacked_odds(odds, 2)
    assert both.form.shape == (4, 2, 2) and (both.linear[0] == both.linear[1]).all()
    assert (both.linear[2] == odds[1].linear).all() and both.own.tolist() == [False] * 4


def test_of_many_numbers_those_that_differ_at_ends_are_used(rng):
    states = rng.normal(size=(3000, 90))
    ended = states[:, 70] > 1.8
    odds = learned(states, ended, rng)
    assert odds.form.shape == (90, 90) and np.count_nonzero(odds.linear) <= MOST_NUMBERS
    below, above = np.zeros((1, 90)), np.zeros((1, 90))
    above[0, 70] = 3.0
    assert chances(odds, below)[0] < 0.1 < 0.8 < chances(odds, above)[0]


def test_the_scale_of_weights_does_not_matter(rng):
    states, nothing = rng.normal(size=(500, 2)), np.zeros(500, dtype=bool)
    found = [chances(learned(states, nothing, rng, weights=np.full(500, scale)), states) for scale in (1.0, 1e-3)]
    assert found[0] == pytest.approx(found[1])
