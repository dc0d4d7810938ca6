"""DRL: exact on a population, the cross-fitted row of `compare`, its equation written again, coverage."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.problem.folds import Folds
from gradientdice.statistics.intervals import independent_shares, standard_error
from problems import covers, episodic_problem, known, leak, random_problem, rolled

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
    data = replace(
        data, initial_states=np.repeat(known(data.initial_states)[: len(known(data.initial_states)) // 2], 2)
    )
    found = gd.DRL(discount, folds=2).answer(gd.Problem(data, gd.TabularPolicy(target), TABLE, 0))
    assert found.value == pytest.approx(mdp.value(target, discount), abs=1e-10)
    assert found.evidence.mean_ratio == pytest.approx(1, abs=1e-10)


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
    found = gd.DRL(0.9).answer(gd.Problem(data, gd.TabularPolicy(target), TABLE, 0))
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


@pytest.mark.slow
@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_intervals_cover_and_the_error_falls(discount):
    mdp, target, data_dist = random_problem(3)
    truth, roots, sizes = mdp.value(target, discount), [], [400, 1200, 3600]
    for size in sizes:
        errors, covered = [], 0
        for seed in range(150 if size == 1200 else 40):
            data = mdp.sample(size, data_dist, np.random.default_rng(seed))
            found = gd.DRL(discount).answer(gd.Problem(data, gd.TabularPolicy(target), TABLE, seed))
            errors.append(found.value - truth)
            covered += covers(found, data, truth)
        roots.append(np.sqrt(np.mean(np.square(errors))))
        if size == 1200:
            assert 0.9 <= covered / 150 <= 0.99
    assert -0.75 < np.polyfit(np.log(sizes), np.log(roots), 1)[0] < -0.3


def test_ends_and_cuts():
    """Where all trajectory estimators agree: a long log of episodes some of which end and others are cut."""
    mdp, target, _, _ = leak()
    data = rolled(leak(), 4000, 4, 0)
    estimates = [gd.evaluate(data, gd.TabularPolicy(target), kind(0.8)) for kind in (gd.DRL, gd.DR, gd.WDR)]
    for estimate in estimates:
        low, high = known(estimate.interval)
        assert low < mdp.value(target, 0.8) < high
    assert known(estimates[0].standard_error) <= 1.02 * known(estimates[1].standard_error)


def test_refusals():
    mdp, target, data_dist = random_problem(0)
    data = mdp.sample(300, data_dist, np.random.default_rng(0))
    policy = gd.TabularPolicy(target)
    with pytest.raises(gd.InputError, match="initial states"):
        gd.evaluate(replace(data, initial_states=None), policy, gd.DRL(0.9))
    features = gd.LinearFeatures(lambda s, a: np.eye(10)[2 * s + a])
    with pytest.raises(gd.InputError, match="With a part of the log left out"):
        rare = replace(
            data, actions=np.where(np.arange(300) == 0, 1, 0), states=np.where(np.arange(300) == 0, 3, data.states)
        )
        gd.evaluate(
            rare, gd.TabularPolicy(np.vstack([np.eye(2)[[0] * 3], [[0, 1]], [[1, 0]]])), gd.DRL(0.9), functions=features
        )
    with pytest.raises(gd.InputError, match="linear functions"):
        gd.evaluate(data, policy, gd.DRL(0.9), functions=gd.MLP())
    with pytest.raises(gd.InputError, match="folds"):
        gd.DRL(0.9, folds=1)
    for bad in (-1.0, float("nan"), 1.5):
        with pytest.raises(gd.InputError, match="discount"):
            gd.DRL(bad)


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_it_is_right_with_termination(discount, rng):
    mdp, target, transition = episodic_problem(3)
    n = 20_000
    s, a = rng.integers(0, 6, n), rng.integers(0, 2, n)
    cumulative = np.cumsum(transition[s, a], axis=1)
    t = (rng.random(n)[:, None] > cumulative).sum(axis=1)
    starts = rng.choice(7, size=n, p=mdp.initial)
    data = gd.Transitions(
        s, a, mdp.reward[s, a] + rng.normal(size=n), np.where(t == 6, 0, t), starts, terminated=t == 6
    )
    policy = gd.TabularPolicy(target[:6])
    answer = gd.DRL(discount).answer(gd.Problem(data, policy, gd.Tabular(6, 2)))
    error = standard_error(independent_shares(known(answer.influence), data))
    inner = transition[:6, :, :6] + transition[:6, :, 6:] * mdp.initial[:6]
    truth = (
        mdp.value(target, discount)
        if discount < 1
        else gd.mdp.TabularMDP(inner, mdp.reward[:6], mdp.initial[:6]).value(target[:6], 1.0)
    )
    assert abs(answer.value - truth) < 4 * error
    plain = gd.evaluate(data, policy, discount=discount)
    assert answer.value == pytest.approx(plain.value, abs=0.3 * error)
    assert error == pytest.approx(plain.standard_error, rel=0.1)
    residual = known(answer.influence).residual
    assert abs(residual.mean()) < 5 * residual.std() / np.sqrt(n), "held-out Bellman residuals average to zero"


def test_restarts_carry_the_initial_states_uncertainty_into_the_doubly_robust_error():
    mdp, target, transition = episodic_problem(1)
    values, errors = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        s, a = rng.integers(0, 6, 3000), rng.integers(0, 2, 3000)
        t = (rng.random(3000)[:, None] > np.cumsum(transition[s, a], axis=1)).sum(axis=1)
        data = gd.Transitions(
            s, a, mdp.reward[s, a], np.where(t == 6, 0, t), rng.choice(7, size=25, p=mdp.initial), terminated=t == 6
        )
        answer = gd.DRL(1.0).answer(gd.Problem(data, gd.TabularPolicy(target[:6]), gd.Tabular(6, 2)))
        values.append(answer.value)
        errors.append(standard_error(independent_shares(known(answer.influence), data)))
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.4)
