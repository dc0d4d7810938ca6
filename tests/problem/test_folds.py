"""Folds keep episodes together."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.problem.folds import Folds, fold_moments, moments_without
from gradientdice.problem.stream import LogDesign
from problems import random_problem


def test_folds_keep_episodes_together(rng):
    mdp, target, _ = random_problem(0)
    data = mdp.rollout(np.full((5, 2), 0.5), episodes=20, horizon=7, rng=rng)
    folds = Folds.create(data, 4, 0)
    by_episode = folds.rows.reshape(20, 7)
    assert (by_episode == by_episode[:, :1]).all() and (folds.initial == by_episode[:, 0]).all()
    assert np.bincount(by_episode[:, 0]).tolist() == [5, 5, 5, 5]


@pytest.mark.parametrize("sampled", [False, True], ids=["discrete", "continuous"])
def test_moments_in_place_are_those_of_the_sums(rng, sampled):
    n = 500
    states = rng.normal(size=(n, 2))
    actions = rng.normal(size=(n, 1)) if sampled else rng.integers(0, 3, n)
    data = gd.Transitions(states, actions, rng.normal(size=n), states[::-1], initial_states=states[:40],
                          terminated=rng.random(n) < 0.1, weights=rng.uniform(0, 2, n))  # fmt: skip
    policy = gd.DiscretePolicy(lambda s: np.tile([0.2, 0.3, 0.5], (len(s), 1)), 3)
    if sampled:
        policy = gd.SamplingPolicy(lambda s, rng: rng.normal(size=(len(s), 1)))
    log = LogDesign(data, policy, gd.RandomFourier(12, 0.7), chunk_rows=150)
    folds = Folds.create(data, 4, 0)
    for plain, found in zip(fold_moments(log, folds), moments_without(log, folds), strict=True):
        for name in ("gram", "next_gram", "mean", "initial", "reward", "weight", "absorbing_weight"):
            np.testing.assert_allclose(getattr(found, name), getattr(plain, name), atol=1e-12, err_msg=name)


def test_coarser_folds_are_made_of_whole_ones(rng):
    folds = Folds(rng.integers(0, 4, 100), rng.integers(0, 4, 30), 4)
    coarse = folds.coarser(2)
    assert coarse.count == 2 and set(coarse.rows) == {0, 1}
    for fold in range(4):
        assert len(set(coarse.rows[folds.rows == fold])) == 1
