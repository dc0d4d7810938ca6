"""Cross-fitting: a fit never sees its own fold."""

from dataclasses import replace

import numpy as np

import gradientdice as gd
from gradientdice.estimators.doubly_robust.cross_fit import cross_fit
from problems import random_problem


def test_a_fit_never_sees_its_own_fold(rng):
    """Changing the rewards of one fold changes no other fold's Q on that fold."""
    mdp, target, data_dist = random_problem(0)
    data = mdp.sample(2000, data_dist, rng)
    policy, functions = gd.TabularPolicy(target), gd.Tabular(5, 2)
    (fitted,) = cross_fit(gd.Problem(data, policy, functions), [gd.GradientDICE(0.9)])
    folds, before = fitted.folds, fitted.scores
    moved = np.where(folds.rows == 1, 100.0, 0.0)
    changed = gd.Problem(replace(data, rewards=data.rewards + moved), policy, functions)
    (again,) = cross_fit(changed, [gd.GradientDICE(0.9)])
    after = again.scores
    own = folds.rows == 1
    np.testing.assert_allclose(after.residual[own] - moved[own], before.residual[own], atol=1e-8)
