"""DRL: it is the cross-fitted answer of `compare`, and its own equation written again."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from conftest import random_problem
from gradientdice.inference.folds import Folds
from gradientdice.inference.intervals import NormalInterval, independent_shares
from related.problems import leak, rolled

TABLE = gd.Tabular(5, 2)


def population(mdp, data_dist):
    """Every (s, a, s') with its probability as weight, and initial states in proportion: twice, one copy a fold."""
    s, a, t = (index.ravel() for index in np.indices(mdp.transition.shape))
    weights = (data_dist[:, :, None] * mdp.transition).ravel()
    starts = np.repeat(np.arange(mdp.num_states), np.round(mdp.initial * 1000).astype(int))
    columns = [np.tile(column, 2) for column in (s, a, mdp.reward[s, a], t)]
    return gd.Transitions(*columns, initial_states=np.tile(starts, 2), weights=np.tile(weights, 2))


@pytest.mark.parametrize("discount", [0.0, 0.8, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_population_answer_is_the_value(discount, seed, monkeypatch):
    mdp, target, data_dist = random_problem(seed)
    initial = np.round(mdp.initial * 1000)
    mdp = gd.mdp.TabularMDP(mdp.transition, mdp.reward, initial / initial.sum())
    data = population(mdp, data_dist)

    def halves(data, count, seed):
        return Folds(np.arange(len(data)) * 2 // len(data), np.arange(len(data.start_states)) % 2, 2)

    # Initial states are sorted, each twice in a row at even places: every other one is the same distribution.
    monkeypatch.setattr(Folds, "create", halves)
    data = replace(data, initial_states=np.repeat(data.initial_states[: len(data.initial_states) // 2], 2))
    found = gd.DRL(discount, folds=2).answer(data, gd.TabularPolicy(target), TABLE, 0)
    assert found.value == pytest.approx(mdp.value(target, discount), abs=1e-10)
    assert found.mean_ratio == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_is_the_cross_fitted_row_of_compare(discount):
    mdp, target, data_dist = random_problem(1)
    data = mdp.sample(800, data_dist, np.random.default_rng(0))
    table = gd.compare(data, gd.TabularPolicy(target), [gd.DRL(discount)])
    values = table["value"].to_numpy()
    assert values[0] == pytest.approx(values[1], rel=1e-12)
    assert table["standard_error"].iloc[0] == pytest.approx(table["standard_error"].iloc[1], rel=1e-12)


def test_agrees_with_its_equation_written_again():
    mdp, target, data_dist = random_problem(2)
    data = mdp.sample(600, data_dist, np.random.default_rng(0))
    found = gd.DRL(0.9).answer(data, gd.TabularPolicy(target), TABLE, 0)
    folds = Folds.create(data, 4, 0)
    x = np.eye(10)[data.states * 2 + data.actions]
    after = (np.eye(5)[data.next_states][:, :, None] * target).reshape(-1, 10)
    start = (np.eye(5)[data.initial_states][:, :, None] * target).reshape(-1, 10)
    first, second = np.empty(600), np.empty(600)
    for fold in range(4):
        fit, out = folds.rows != fold, folds.rows == fold
        system = x[fit].T @ (x[fit] - 0.9 * after[fit]) / fit.sum()
        ratio = np.linalg.solve(system.T, 0.1 * start[folds.initial != fold].mean(axis=0))
        q = np.linalg.solve(system, x[fit].T @ data.rewards[fit] / fit.sum())
        second[out] = (x[out] @ ratio) * (data.rewards[out] + (0.9 * after[out] - x[out]) @ q)
        first[folds.initial == fold] = 0.1 * start[folds.initial == fold] @ q
    assert found.value == pytest.approx(first.mean() + second.mean(), rel=1e-10)


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_intervals_cover_and_the_error_falls(discount):
    mdp, target, data_dist = random_problem(3)
    truth, roots, sizes = mdp.value(target, discount), [], [400, 1200, 3600]
    for size in sizes:
        errors, covered = [], 0
        for seed in range(200 if size == 1200 else 60):
            data = mdp.sample(size, data_dist, np.random.default_rng(seed))
            found = gd.DRL(discount).answer(data, gd.TabularPolicy(target), TABLE, seed)
            errors.append(found.value - truth)
            samples = independent_shares(found.shares, data)
            low, high = NormalInterval().interval(found.value, samples, 0.95, 0)
            covered += low < truth < high
        roots.append(np.sqrt(np.mean(np.square(errors))))
        if size == 1200:
            assert 0.9 <= covered / 200 <= 0.99
    assert -0.75 < np.polyfit(np.log(sizes), np.log(roots), 1)[0] < -0.3


def test_ends_and_cuts():
    """Where all trajectory estimators agree: a long log of episodes some of which end and others are cut."""
    mdp, target, _, _ = leak()
    data = rolled(leak(), 4000, 4, 0)
    estimates = [gd.evaluate(data, gd.TabularPolicy(target), kind(0.8)) for kind in (gd.DRL, gd.DR, gd.WDR)]
    for estimate in estimates:
        low, high = estimate.interval
        assert low < mdp.value(target, 0.8) < high
    assert estimates[0].standard_error <= 1.02 * estimates[1].standard_error


def test_refusals():
    mdp, target, data_dist = random_problem(0)
    data = mdp.sample(300, data_dist, np.random.default_rng(0))
    policy = gd.TabularPolicy(target)
    with pytest.raises(gd.InputError, match="initial states"):
        gd.evaluate(replace(data, initial_states=None), policy, gd.DRL(0.9))
    with pytest.raises(gd.InputError, match="DRL fits with a part of the log left out"):
        gd.evaluate(replace(data, actions=np.where(np.arange(300) == 0, 1, 0)), policy, gd.DRL(0.9))
    with pytest.raises(gd.InputError, match="linear functions"):
        gd.evaluate(data, policy, gd.DRL(0.9), functions=gd.MLP())
    with pytest.raises(gd.InputError, match="folds"):
        gd.DRL(0.9, folds=1)
    for bad in (-1.0, float("nan"), 1.5):
        with pytest.raises(gd.InputError, match="discount"):
            gd.DRL(bad)
