"""Importance ratios, what is said about wrong ones, and the log as episodes."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.estimators.behavior import Episodes, ratio_cautions
from problems import known, leak, made, random_problem, rolled, take


def test_episodes_in_any_order():
    rng = np.random.default_rng(0)
    data = rolled(leak(), 30, 6, 0)
    number = rng.permutation(100)[:30] - 50
    data = replace(data, episodes=number[data.episodes])
    step = np.array([np.sum(known(data.episodes)[:row] == known(data.episodes)[row]) for row in range(len(data))])
    order = np.lexsort([rng.random(len(data)), step])
    data, step = take(data, order), step[order]
    episodes = Episodes.of("test", data)
    np.testing.assert_array_equal(episodes.step, step)
    np.testing.assert_array_equal(np.unique(known(data.episodes))[episodes.index], data.episodes)
    ratios = rng.uniform(0.1, 3.0, size=len(data)) * (rng.random(len(data)) < 0.9)
    products = episodes.products("test", ratios)
    for index, name in enumerate(np.unique(known(data.episodes))):
        rows = np.flatnonzero(data.episodes == name)
        np.testing.assert_allclose(products[rows], np.cumprod(ratios[rows]), rtol=1e-12)
        assert episodes.first[index] == rows[0] and episodes.last[index] == rows[-1]
        assert episodes.length[index] == len(rows) and episodes.terminated[index] == known(data.terminated)[rows[-1]]
    visited = np.concatenate([rows for _, rows in episodes.forwards()])
    assert sorted(visited) == list(range(len(data))) and (np.diff(step[visited]) >= 0).all()


@pytest.fixture(scope="module")
def log():
    mdp, target, _ = random_problem(0)
    return mdp, target, mdp.rollout(np.full((5, 2), 0.5), 200, 40, np.random.default_rng(1))


NEEDS_BEHAVIOR = ["is", "pdis", "wis", "wpdis", "dr", "wdr", "magic", "gem", "bch", "discounted-cop-td"]


@pytest.mark.parametrize("name", NEEDS_BEHAVIOR)
def test_behaviour_probabilities_that_cannot_be_right_reach_the_verdict(log, name):
    _, target, data = log
    wrong = replace(data, behavior_log_probs=data.behavior_log_probs - np.log(2))
    policy = gd.TabularPolicy(target)
    right = gd.evaluate(data, policy, made(name, 0.8))
    assert not any("behavior_log_probs" in caution for caution in right.cautions)
    estimate = gd.evaluate(wrong, policy, made(name, 0.8))
    assert any("average 2 over the log" in caution for caution in estimate.cautions), estimate.cautions
    assert str(estimate.verdict) != "trust"


@pytest.mark.parametrize("kind", [gd.GEM, gd.BCH, gd.DiscountedCOPTD, gd.WDR])
def test_actions_that_are_never_logged_are_not_trusted_with_a_cloned_behaviour(kind):
    transition, reward = np.zeros((3, 2, 3)), np.zeros((3, 2))
    transition[0] = transition[1] = [[0.5, 0.5, 0], [0.1, 0.6, 0.3]]
    transition[2], reward[2, 1] = [[1, 0, 0], [0, 0, 1]], 10.0
    mdp = gd.mdp.TabularMDP(transition, reward, np.eye(3)[0])
    behavior, target = np.full((3, 2), 0.5), np.tile([0.4, 0.6], (3, 1))
    behavior[2], target[2] = [1, 0], [0.1, 0.9]
    data = replace(mdp.rollout(behavior, 300, 40, np.random.default_rng(0)), behavior_log_probs=None)
    estimator = kind(0.9, behavior=gd.BehaviorCloning())
    estimate = gd.evaluate(data, gd.TabularPolicy(target), estimator)
    assert known(known(estimate.diagnostics).unlogged) == pytest.approx(0.124, abs=0.01)
    assert estimate.verdict is gd.Verdict.DO_NOT_TRUST


@pytest.mark.parametrize("kind", [gd.IS, gd.PDIS, gd.WIS, gd.WPDIS])
def test_an_action_that_is_mostly_taken_and_never_logged_is_not_trusted(kind):
    """Normalised weights have mean 1 whatever is missing; the ratios themselves do not."""
    mdp, _, _ = random_problem(0)
    data = mdp.rollout(np.tile([1.0, 0.0], (5, 1)), 300, 2, np.random.default_rng(0))
    data = replace(data, terminated=np.tile([False, True], 300), truncated=None)
    estimate = gd.evaluate(data, gd.TabularPolicy(np.tile([0.3, 0.7], (5, 1))), kind(0.5))
    assert estimate.verdict is gd.Verdict.DO_NOT_TRUST


def test_probabilities_with_few_digits_and_small_logs_raise_no_alarm():
    rng = np.random.default_rng(0)
    for rows in (1, 2, 5, 10, 2000):
        for _ in range(100):
            rare = rng.random(rows) < 0.1
            data = gd.Transitions(np.zeros(rows, int), rare.astype(int), np.zeros(rows), np.zeros(rows, int),
                                  behavior_log_probs=np.round(np.log(np.where(rare, 0.1, 0.9)), 3))  # fmt: skip
            same = np.where(rare, 0.1, 0.9) * np.exp(-known(data.behavior_log_probs))
            assert not ratio_cautions(data, same)
            if rows <= 10:
                assert not ratio_cautions(data, np.where(rare, 1.8, 0.2 / 0.9 + 0.7))


def test_a_ratio_too_large_to_square_is_no_error():
    data = gd.Transitions([0, 0], [0, 1], [0.0, 1.0], [0, 0], behavior_log_probs=[-0.1, -500.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not ratio_cautions(data, np.array([1.0, np.exp(500.0)]))


def test_true_ratios_are_rarely_called_wrong():
    """In 2,000 logs with ratios up to 10, of dependent rows, no more than a handful of false alarms."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(2000):
        rare = rng.random(400) < 0.1
        data = gd.Transitions(np.zeros(400, int), rare.astype(int), np.zeros(400), np.zeros(400, int),
                              behavior_log_probs=np.log(np.where(rare, 0.1, 0.9)))  # fmt: skip
        alarms += bool(ratio_cautions(data, np.where(rare, 9.0, 1 / 9)))
    assert alarms <= 10
