"""Logs at the edges of what makes sense: small types, fixed starts, few units, things never logged."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from conftest import random_problem
from gradientdice.functions.stream import LogDesign
from gradientdice.inference.doubly_robust import doubly_robust
from gradientdice.inference.folds import Folds, fold_fits, fold_moments, held_out
from gradientdice.inference.intervals import independent_shares, standard_error
from test_moments import episodic_problem, population_log


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint16, np.uint64])
def test_small_whole_numbers_do_not_overflow(kind, rng):
    states, actions = rng.integers(0, 120, size=30_000), rng.integers(0, 2, size=30_000)
    following = np.clip(states + 2 * actions - 1, 0, 119)
    policy = gd.TabularPolicy(np.tile([0.3, 0.7], (120, 1)))
    wide = gd.Transitions(states, actions, states / 120, following, states[:500])
    narrow = gd.Transitions(
        *(array.astype(kind) for array in (states, actions)),
        states / 120,
        following.astype(kind),
        states[:500].astype(kind),
    )
    assert gd.evaluate(narrow, policy, discount=0.9).value == gd.evaluate(wide, policy, discount=0.9).value


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99])
def test_termination_alone_is_no_reason_for_distrust(discount):
    """Much of the target's mass is past the end, where no row is; the mean ratio counts it."""
    mdp, target, _ = episodic_problem(0)
    log = replace(population_log(mdp), weights=None)
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(log), size=5000, p=population_log(mdp).weights / population_log(mdp).weights.sum())
    data = gd.Transitions(
        log.states[chosen],
        log.actions[chosen],
        log.rewards[chosen],
        log.next_states[chosen],
        rng.choice(7, size=5000, p=mdp.initial),
        terminated=log.terminated[chosen],
    )
    estimate = gd.evaluate(data, gd.TabularPolicy(target[:6]), discount=discount)
    assert abs(estimate.diagnostics.mean_ratio_error) < 1e-9
    assert estimate.verdict is gd.Verdict.TRUST
    assert abs(estimate.value - mdp.value(target, discount)) < 4 * estimate.standard_error


def test_one_fixed_initial_state_is_a_known_distribution(rng):
    mdp, target, data_dist = random_problem(0)
    data, policy = mdp.sample(5000, data_dist, rng), gd.TabularPolicy(target)
    one, two, many = (
        gd.evaluate(replace(data, initial_states=[2] * count), policy, discount=0.9) for count in (1, 2, 1000)
    )
    np.testing.assert_allclose(one.interval, many.interval)
    np.testing.assert_allclose(two.interval, many.interval)
    few = gd.evaluate(replace(data, initial_states=[2, 3]), policy, discount=0.9)
    assert few.interval[1] - few.interval[0] < 30 * few.standard_error


def test_one_row_or_one_episode_gets_a_clear_refusal():
    policy = gd.TabularPolicy([[1.0]])
    with pytest.raises(gd.InputError, match="one row or one episode"):
        gd.evaluate(gd.Transitions([0], [0], [1.0], [0]), policy, discount=1.0)
    with pytest.raises(gd.InputError, match="one row or one episode"):
        gd.evaluate(gd.Transitions([0, 0], [0, 0], [1.0, 2.0], [0, 0], episodes=[1, 1]), policy, discount=1.0)


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
        log, folds = LogDesign(data, gd.TabularPolicy(target[:6]), gd.Tabular(6, 2)), Folds.create(data, 4, 0)
        (fits,) = fold_fits(fold_moments(log, folds), [gd.GradientDICE(1.0)], gd.ClosedForm())
        answer = doubly_robust(log, fits, held_out(log, folds, [fits])[0])
        values.append(answer.value)
        errors.append(standard_error(independent_shares(answer.shares, data)))
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.4)


def continuous(rng, n=300, episodes=None, actions=2):
    states = rng.normal(size=(n, 2))
    return gd.Transitions(
        states, rng.integers(0, actions, n), rng.normal(size=n), states, states[:50], episodes=episodes
    )


def test_too_few_units_for_cross_fitting_are_refused(rng):
    policy = gd.DiscretePolicy(lambda s: np.full((len(s), 2), 0.5), 2)
    for data in (continuous(rng, episodes=np.arange(300) // 100), continuous(rng, n=3)):
        with pytest.raises(gd.InputError, match="at least 4 independent units"):
            gd.evaluate(data, policy, discount=0.9)
    weights = np.where(np.arange(300) < 75, 0.0, 1.0)
    data = replace(continuous(rng, episodes=np.arange(300) // 75), weights=weights)
    assert np.isfinite(gd.evaluate(data, policy, discount=0.9).value), "an episode of weight 0 is skipped"


def test_an_action_that_was_never_logged_is_refused_for_every_function_class(rng):
    data = replace(continuous(rng), actions=np.zeros(300, dtype=int))
    policy = gd.DiscretePolicy(lambda s: np.tile([0.9, 0.1], (len(s), 1)), 2)
    with pytest.raises(gd.InputError, match="takes action 1, which the log never shows"):
        gd.evaluate(data, policy, discount=0.9)
    with pytest.raises(gd.InputError, match="Feature 2 is 0 in every logged row"):
        gd.evaluate(data, policy, discount=0.9, functions=gd.LinearFeatures(lambda s, a: np.eye(2)[a]))


def test_what_follows_an_end_may_be_anything(rng):
    mdp, target, data_dist = random_problem(0)
    data = mdp.sample(500, data_dist, rng)
    ended = rng.random(500) < 0.2
    base = gd.Transitions(
        data.states, data.actions, data.rewards, data.next_states, data.initial_states, terminated=ended
    )
    odd = replace(base, next_states=np.where(ended, 10_000, data.next_states))
    policy = gd.DiscretePolicy(lambda states: target[states], 2)
    assert gd.evaluate(odd, policy, discount=0.9).value == gd.evaluate(base, policy, discount=0.9).value
    states = data.states[:, None].astype(float)
    missing = np.where(ended[:, None], np.nan, data.next_states[:, None])
    assert np.isfinite(gd.Transitions(states, data.actions, data.rewards, missing, terminated=ended).next_states).all()
    with pytest.raises(gd.InputError, match="next_states"):
        gd.Transitions(states, data.actions, data.rewards, np.full((500, 1), np.nan), terminated=ended)


def test_a_logged_policy_without_initial_choices_serves_the_average_reward(rng):
    mdp, target, _ = random_problem(0)
    data = mdp.rollout(np.full((5, 2), 0.5), 20, 30, rng)
    logged = gd.LoggedPolicy(target[data.next_states])
    exact = gd.evaluate(data, logged, discount=1.0)
    learned = gd.evaluate(
        data,
        logged,
        gd.GradientDICE(1.0),
        functions=gd.Tabular(5, 2),
        solver=gd.PrimalDual(20_000, 0.05, batch_size=16),
    )
    assert learned.value == pytest.approx(exact.value, abs=0.1)


def test_renamed_initial_columns_may_be_shorter(tmp_path):
    (tmp_path / "log.csv").write_text("states,actions,rewards,next_states,start\n0,0,1,0,0\n0,0,2,0,\n")
    assert gd.load(tmp_path / "log.csv", columns={"initial_states": "start"}).initial_states.tolist() == [0]


def test_hard_constraints_seeds_and_misnamed_files_are_refused_clearly(tmp_path, rng):
    mdp, target, data_dist = random_problem(0)
    data, policy = mdp.sample(200, data_dist, rng), gd.TabularPolicy(target)
    with pytest.raises(gd.InputError, match="finite norm_penalty"):
        gd.evaluate(
            data, policy, gd.GradientDICE(0.9, np.inf), functions=gd.Tabular(5, 2), solver=gd.ProjectedPrimalDual(10)
        )
    with pytest.raises(gd.InputError, match="seed must be at least 0"):
        gd.evaluate(data, policy, discount=0.9, seed=-1)
    np.save(tmp_path / "array.npy", np.zeros(3))
    (tmp_path / "array.npy").rename(tmp_path / "array.npz")
    with pytest.raises(gd.InputError, match="not a readable"):
        gd.load(tmp_path / "array.npz")
