"""The noise of simulated steps, and where it is drawn from."""

import numpy as np
import pytest

from gradientdice.default.model.noise import (
    NOISE_FLOOR,
    LocalNoise,
    NoisyRows,
    local_noise,
    noisy_numbers,
    stacked_noise,
)


def rows_with(errors, level=None) -> NoisyRows:
    """Rows of two networks, whose one feature beside the constant is given."""
    count = errors.shape[1]
    level = np.zeros(count) if level is None else level
    features = np.repeat(np.column_stack([level, np.ones(count)])[None], len(errors), axis=0)
    return NoisyRows(np.arange(count), features, errors)


def drawn_at(noise: LocalNoise, level: float, rng, count=4000) -> np.ndarray:
    """Noise of the first network where the feature has this value."""
    features = np.tile([level, 1.0], (count, 1))
    numbers = rng.integers(noise.draws.shape[2], size=count)
    return np.asarray(LocalNoise(noise.size[0], noise.cuts[0], noise.draws[0])(features, numbers))


def test_noise_is_what_two_networks_have_in_common(rng):
    noise, own = rng.normal(size=(1, 4000, 1)), 0.5 * rng.normal(size=(2, 4000, 1))
    rows = rows_with(noise + own)
    assert np.std(drawn_at(local_noise(rows, rows, rng), 0.0, rng)) == pytest.approx(1.0, abs=0.1)
    # What is each network's own inaccuracy is no noise: deterministic dynamics stay deterministic.
    assert not noisy_numbers(own).any()
    small = np.sqrt(NOISE_FLOOR / 4) * noise
    assert not noisy_numbers(np.concatenate([small, small])).any()


def test_noise_is_drawn_from_rows_where_errors_are_as_large(rng):
    level = rng.uniform(-1, 1, size=6000)
    # Nearly deterministic where the feature is negative, noisy where it is positive.
    shared = np.where(level > 0, 2.0, 0.01)[:, None] * rng.normal(size=(6000, 1))
    errors = np.stack([shared, shared]) + 0.001 * rng.normal(size=(2, 6000, 1))
    rows = rows_with(errors, level)
    noise = local_noise(rows, rows, rng)
    assert noise.draws.shape[1] == 8
    assert not drawn_at(noise, -0.8, rng).any()
    assert np.std(drawn_at(noise, 0.8, rng)) == pytest.approx(2.0, rel=0.15)


def test_few_rows_are_one_group_and_no_row_counts_as_two(rng):
    errors = np.repeat(rng.normal(size=(1, 50, 1)), 2, axis=0)
    again = np.tile(np.arange(50), 20)
    rows = rows_with(errors)
    repeated = NoisyRows(again, rows.features[:, again], errors[:, again])
    noise = local_noise(rows, repeated, rng)
    assert noise.draws.shape[1] == 1 and noise.cuts.shape == (2, 0)


def test_folds_with_fewer_groups_repeat_their_last(rng):
    level = rng.uniform(-1, 1, size=6000)
    errors = np.repeat((np.exp(level) * rng.normal(size=6000))[None, :, None], 2, axis=0)
    many, few = rows_with(errors, level), rows_with(errors[:, :40], level[:40])
    parts = [local_noise(rows, rows, rng) for rows in (many, few)]
    both = stacked_noise(parts)
    assert both.draws.shape[:2] == (4, 8) and both.cuts.shape == (4, 7)
    single = LocalNoise(both.size[3], both.cuts[3], both.draws[3])
    numbers = np.arange(10)
    for value in (-1.0, 0.0, 1.0):
        found = np.asarray(single(np.tile([value, 1.0], (10, 1)), numbers))
        assert (found == parts[1].draws[1, 0, numbers]).all()
