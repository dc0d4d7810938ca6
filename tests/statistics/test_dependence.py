"""Scores of sums of squares: standard normal under noise, large where a target goes with an instrument."""

import numpy as np

from gradientdice.statistics.past import DRAWS, dependence, normal_scores


def test_sums_of_squares_become_normal_scores():
    rng = np.random.default_rng(0)
    for degrees in (1, 2, 4, 30):
        sums = rng.chisquare(degrees, size=20_001)
        scores = normal_scores(7.0 * sums)  # the unit does not matter
        # The upper tail, which thresholds look at, is that of a normal variable (.0228, .0013) even for one degree.
        assert 0.019 < np.mean(scores > 2) < 0.027 and 0.0005 < np.mean(scores > 3) < 0.003
        if degrees >= 4:
            assert abs(scores.mean()) < 0.03 and abs(scores.std() - 1) < 0.03
    assert (normal_scores(np.zeros(10)) == 0).all()


def test_noise_has_a_small_score_and_a_common_part_a_large_one():
    rng = np.random.default_rng(1)
    signs = rng.choice([-1.0, 1.0], size=(2_000, DRAWS))
    scores = []
    for strength in (0.0, 0.2):
        found = []
        for _ in range(20):
            instruments = [rng.normal(size=(2_000, 3)), rng.normal(size=(2_000, 1))]
            target = rng.normal(size=2_000) + strength * instruments[0][:, 0]
            versions = np.column_stack([target, target[:, None] * signs])
            found.append(dependence([(instruments, versions)]))
        scores.append(found)
    assert max(scores[0]) < 3.5 and min(scores[1]) > 3.5
