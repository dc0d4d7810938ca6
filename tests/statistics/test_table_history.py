"""A table's steps and their past: instruments side by side score as they do one by one, and policies share the rest."""

import numpy as np
from scipy.sparse import csr_array

from gradientdice.statistics.past import group_scores
from gradientdice.statistics.table_history import Stacked, TableChange


def test_groups_side_by_side_score_as_they_do_alone():
    rng = np.random.default_rng(0)
    groups = [csr_array(rng.normal(size=(50, width)) * (rng.random((50, width)) < 0.3)) for width in (4, 1, 7)]
    # A column without entries at the end of a group is one of the group's all the same.
    groups.append(csr_array((np.ones(50), np.zeros(50, dtype=int), np.arange(51)), shape=(50, 3)))
    versions = rng.normal(size=(50, 21))
    for found, expected in zip(Stacked.of(groups).scores(versions), group_scores(groups, versions), strict=True):
        assert np.allclose(found, expected)


def test_a_change_of_rewards_is_seen_whatever_the_residuals():
    rng = np.random.default_rng(1)
    eras, states, actions = np.repeat(np.arange(4), 500), rng.integers(0, 3, 2000), rng.integers(0, 2, 2000)
    noise = rng.normal(size=(3, 2000))
    steady, changed = TableChange(eras, states, actions, noise[0]), TableChange(eras, states, actions, noise[0] + eras)
    assert steady.score(noise[1]) < 4 < min(steady.score(noise[1] + eras), changed.score(noise[1]))
