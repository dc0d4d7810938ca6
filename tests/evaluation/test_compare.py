"""`compare` as a user calls it."""

import numpy as np
import pytest

import gradientdice as gd
from problems import by_estimator, random_problem


@pytest.fixture(scope="module")
def setting():
    mdp, target, data_dist = random_problem(0)
    return mdp, target, mdp.sample(5000, data_dist, np.random.default_rng(0))


def test_compare_gives_every_estimator_a_row(setting):
    mdp, target, data = setting
    table = gd.compare(
        data,
        gd.TabularPolicy(target),
        [gd.GradientDICE(0.9), gd.DualDICE(0.9, power=2.0), gd.GenDICE(0.9), gd.DualDICE(1.0, power=2.0)],
    )
    assert len(table) == 5
    rows = by_estimator(table)
    plain, dual = rows[repr(gd.GradientDICE(0.9))], rows[repr(gd.DualDICE(0.9, power=2.0))]
    assert plain["value"] == pytest.approx(dual["value"])
    assert rows[repr(gd.GenDICE(0.9))]["value"] == pytest.approx(plain["value"])
    assert rows[repr(gd.GenDICE(0.9))]["bellman_loss"] == plain["bellman_loss"]
    assert "its discount is 1" in rows[repr(gd.DualDICE(1.0, power=2.0))]["note"]
    assert sum("doubly robust" in name for name in rows) == 1


def test_compare_marks_one_to_use_by_held_out_loss(setting):
    mdp, target, data = setting
    # A ridge this heavy ruins the ratio and with it the matching Q.
    good, bad = gd.GradientDICE(0.9), gd.GradientDICE(0.9, ridge=10.0)
    table = gd.compare(data, gd.TabularPolicy(target), [bad, good])
    first, *others = table.to_dict("records")
    assert first["choice"] == "use this" and [row["choice"] for row in others] == ["", ""]
    assert first["estimator"] != repr(bad)
    assert abs(first["value"] - mdp.value(target, 0.9)) < 4 * first["standard_error"]
    rows = by_estimator(table)
    limit = rows[repr(good)]["bellman_loss"] + 10 * rows[repr(good)]["loss_noise"]
    assert rows[repr(bad)]["bellman_loss"] > limit


def test_compare_chooses_features_for_continuous_states():
    rng = np.random.default_rng(0)
    states = rng.normal(size=(2000, 1))
    actions = rng.integers(0, 2, size=2000)
    following = 0.5 * states + (actions[:, None] - 0.5) + 0.1 * rng.normal(size=states.shape)
    data = gd.Transitions(states, actions, states[:, 0] ** 2, following, initial_states=states[:200])
    policy = gd.DiscretePolicy(lambda s: np.tile([0.3, 0.7], (len(s), 1)), 2)
    table = gd.compare(data, policy, [gd.GradientDICE(0.9)], effort="quick")
    assert np.isfinite(table["value"]).all() and list(table["choice"]).count("use this") == 1
    assert np.std(table["value"]) < 3 * np.max(table["standard_error"])


def test_compare_without_enough_episodes_still_answers(setting):
    mdp, target, _ = setting
    two = mdp.rollout(np.full((5, 2), 0.5), 2, 500, np.random.default_rng(0))
    table = gd.compare(two, gd.TabularPolicy(target), [gd.GradientDICE(0.9)])
    assert len(table) == 2 and np.isnan(np.asarray(table["bellman_loss"], dtype=float)).all()
    first, second = table.to_dict("records")
    assert first["choice"] == "use this" and "episodes" in second["note"]
