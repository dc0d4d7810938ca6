"""Folds keep episodes together."""

import numpy as np

from gradientdice.problem.folds import Folds
from problems import random_problem


def test_folds_keep_episodes_together(rng):
    mdp, target, _ = random_problem(0)
    data = mdp.rollout(np.full((5, 2), 0.5), episodes=20, horizon=7, rng=rng)
    folds = Folds.create(data, 4, 0)
    by_episode = folds.rows.reshape(20, 7)
    assert (by_episode == by_episode[:, :1]).all() and (folds.initial == by_episode[:, 0]).all()
    assert np.bincount(by_episode[:, 0]).tolist() == [5, 5, 5, 5]
