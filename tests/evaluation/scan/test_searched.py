"""Continuous states without functions: learned from the sample, scored on every other row."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.log.scanning import log as log_module
from problems import known
from scans import written

HORIZON = 10
EPISODES, SAMPLE = 700, 1000


def linear_system(episodes: int, seed: int, ends: float = 0.0) -> gd.Transitions:
    """Two coordinates that two actions push apart; an episode ends with a given chance after each step."""
    rng = np.random.default_rng(seed)
    states, alive, columns = rng.normal(size=(episodes, 2)), np.ones(episodes, dtype=bool), []
    for step in range(HORIZON):
        actions = rng.integers(0, 2, size=episodes)
        following = 0.7 * states + 0.3 * np.outer(2 * actions - 1, [1.0, -0.5]) + 0.2 * rng.normal(size=(episodes, 2))
        ended = rng.random(episodes) < ends
        columns.append(
            [np.arange(episodes)[alive] * HORIZON + step, *(a[alive] for a in (states, actions, following, ended))]
        )
        states, alive = following, alive & ~ended
    place, *parts = (np.concatenate(column) for column in zip(*columns, strict=True))
    order = np.argsort(place)
    states, actions, following, ended = (part[order] for part in parts)
    return gd.Transitions(
        states,
        actions,
        following[:, 0],
        following,
        terminated=ended if ends else None,
        episodes=place[order] // HORIZON,
    )


def pushed(share: float) -> gd.DiscretePolicy:
    return gd.DiscretePolicy(lambda states: np.tile([1 - share, share], (len(states), 1)), 2)


def truth(share: float, discount: float) -> float:
    """The first coordinate's discounted mean: m_t = 0.7 m_{t−1} + 0.3 (2 share − 1), from 0."""
    push = 0.3 * (2 * share - 1)
    return push / (1 - 0.7 * discount)


@pytest.fixture
def few_in_memory(monkeypatch):
    monkeypatch.setattr(log_module, "SAMPLE_ROWS", SAMPLE)
    monkeypatch.setattr("gradientdice.log.scanning.opening.PART_ROWS", 500)


@pytest.mark.parametrize("discount", [0.8, pytest.param(1.0, marks=pytest.mark.slow)])
def test_the_truth_is_in_an_interval_that_more_rows_make_narrower(tmp_path, few_in_memory, discount):
    log = gd.scan(written(tmp_path, linear_system(EPISODES, 1), group=500), batch_rows=700)
    found = gd.evaluate(log, pushed(0.7), discount=discount, effort="quick")
    sample = gd.evaluate(log.sample, pushed(0.7), discount=discount, effort="quick")
    low, high = known(found.interval)
    assert low < truth(0.7, discount) < high
    # Six times as many rows; the room for misfit stays the sample's.
    assert known(found.sampling_error) < 0.6 * known(sample.sampling_error)
    assert found.num_rows == HORIZON * EPISODES
    assert any(
        note.startswith(f"features, ratio and Q were learned from {len(log.sample):,} rows") for note in found.notes
    )


@pytest.mark.slow
@pytest.mark.parametrize("discount", [0.8, 1.0])
def test_episodes_that_end(tmp_path, few_in_memory, discount):
    data = linear_system(EPISODES, 2, ends=0.05)
    log = gd.scan(written(tmp_path, data, group=500), batch_rows=700)
    found = gd.evaluate(log, pushed(0.7), discount=discount, effort="quick")
    expected = gd.evaluate(data, pushed(0.7), discount=discount, effort="quick")
    assert abs(found.value - expected.value) < 2 * np.hypot(known(found.standard_error), known(expected.standard_error))


def test_a_log_that_fits_is_evaluated_in_memory(tmp_path):
    data = linear_system(60, 3)
    log = gd.scan(written(tmp_path, data, (100, 250)), batch_rows=70)
    found, expected = (gd.evaluate(own, pushed(0.7), discount=0.8, effort="quick") for own in (log, data))
    assert (found.value, found.interval, found.ratio is None) == (expected.value, expected.interval, False)


def test_policies_share_the_passes(tmp_path, few_in_memory):
    log = gd.scan(written(tmp_path, linear_system(EPISODES, 4), group=500), batch_rows=700)
    ranking = gd.rank(log, {"right": pushed(0.7), "left": pushed(0.4)}, 0.8, effort="quick")
    assert ranking.names == ("right", "left") and ranking.best_set == ("right",)
    apart = ranking.estimates["right"] - ranking.estimates["left"]
    assert apart.interval[0] < truth(0.7, 0.8) - truth(0.4, 0.8) < apart.interval[1]
    one, other = (known(estimate.sampling_error) for estimate in ranking.estimates.values())
    assert apart.sampling_error < np.hypot(one, other)


def test_rows_of_the_sample_are_not_scored(tmp_path, few_in_memory):
    log = gd.scan(written(tmp_path, linear_system(EPISODES, 1), group=500), batch_rows=333)
    rest = log.without_sample()
    weights = [batch.data.row_weights for part in range(len(rest.parts)) for batch in rest.batches(part)]
    assert SAMPLE <= (np.concatenate(weights) == 0).sum() <= SAMPLE + len(rest.parts)
    assert rest.sample is log.sample


def test_other_estimators_are_refused_by_name(tmp_path, few_in_memory):
    log = gd.scan(written(tmp_path, linear_system(EPISODES, 1), group=500))
    with pytest.raises(gd.InputError, match=r"GradientDICE needs functions=.*log\.sample"):
        gd.evaluate(log, pushed(0.7), gd.GradientDICE(0.8))
    table = gd.compare(log, pushed(0.7), [gd.GradientDICE(0.8)], effort="quick")
    assert table["choice"].tolist() == ["use this", ""] and "needs functions" in table["note"][1]


@pytest.mark.slow
def test_a_learned_models_q_is_smoothed(tmp_path, few_in_memory):
    log = gd.scan(written(tmp_path, linear_system(EPISODES, 1), group=500), batch_rows=700)
    found = gd.evaluate(log, pushed(0.7), discount=0.8)
    low, high = known(found.interval)
    assert low < truth(0.7, 0.8) < high and high - low < 0.3
    assert any("the model's" in note for note in found.notes)
