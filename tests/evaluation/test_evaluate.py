"""`evaluate` as a user calls it."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gradientdice as gd
from problems import known, random_problem


@pytest.fixture(scope="module")
def setting():
    mdp, target, data_dist = random_problem(0)
    return mdp, target, mdp.sample(5000, data_dist, np.random.default_rng(0))


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.9, 0.99, 1.0])
def test_the_interval_is_around_the_truth(setting, discount):
    mdp, target, data = setting
    estimate = gd.evaluate(data, gd.TabularPolicy(target), discount=discount)
    assert abs(estimate.value - mdp.value(target, discount)) < 4 * known(estimate.standard_error)
    assert known(estimate.interval)[0] < estimate.value < known(estimate.interval)[1]
    assert known(estimate.ratio).shape == (5000,) and estimate.status.ok
    assert estimate.total == (None if discount == 1 else estimate.value / (1 - discount))


def test_every_way_to_give_the_policy_agrees(setting):
    mdp, target, data = setting
    table = gd.evaluate(data, gd.TabularPolicy(target), discount=0.9)
    function = gd.evaluate(data, gd.DiscretePolicy(lambda states: target[states], 2), discount=0.9)
    columns = gd.LoggedPolicy(target[data.next_states], target[data.initial_states])
    logged = gd.evaluate(data, columns, discount=0.9)
    linear = gd.evaluate(
        data, gd.TabularPolicy(target), discount=0.9, functions=gd.LinearFeatures(lambda s, a: np.eye(10)[s * 2 + a])
    )
    for other in (function, logged, linear):
        assert other.value == pytest.approx(table.value, abs=1e-9)
    for other in (function, logged):
        assert other.standard_error == pytest.approx(table.standard_error, rel=1e-6)
    # Only a table knows that each of its means is fitted to the rows of one pair, here a few hundred.
    assert known(linear.standard_error) < known(table.standard_error) < 1.005 * known(linear.standard_error)


def test_a_policy_of_drawn_actions_agrees_with_a_sampler(rng):
    states, actions = rng.normal(size=(500, 1)), rng.normal(size=(500, 1))
    data = gd.Transitions(
        states, actions, states[:, 0] + actions[:, 0], rng.normal(size=(500, 1)), rng.normal(size=(50, 1))
    )
    functions = gd.LinearFeatures(lambda s, a: np.column_stack([s, a]))
    given = gd.LoggedPolicy(next_actions=0.5 * data.next_states, initial_actions=0.5 * known(data.initial_states))
    sampler = gd.SamplingPolicy(lambda s, rng: 0.5 * s)
    first, second = (gd.evaluate(data, p, discount=0.9, functions=functions).value for p in (given, sampler))
    assert first == pytest.approx(second, rel=1e-12)


def test_reward_shift_and_scale(setting):
    mdp, target, data = setting
    policy = gd.TabularPolicy(target)
    base = gd.evaluate(data, policy, discount=0.9)
    moved = gd.evaluate(replace(data, rewards=3 * data.rewards + 7), policy, discount=0.9)
    assert moved.value == pytest.approx(3 * base.value + 7) and moved.standard_error == pytest.approx(
        3 * known(base.standard_error)
    )


def test_stochastic_solvers_give_a_value_and_say_there_is_no_interval(setting):
    mdp, target, data = setting
    policy = gd.TabularPolicy(target)
    exact = gd.evaluate(data, policy, discount=0.5)
    for solver in (gd.PrimalDual(40_000, 0.05, batch_size=32), gd.ProjectedPrimalDual(100_000, learning_rate=0.1)):
        estimate = gd.evaluate(data, policy, gd.GradientDICE(0.5), functions=gd.Tabular(5, 2), solver=solver)
        assert estimate.value == pytest.approx(exact.value, abs=0.1)
        assert estimate.interval is None and "no interval" in str(estimate)
        json.loads(estimate.to_json())


def test_summary_json_and_card(setting):
    mdp, target, data = setting
    estimate = gd.evaluate(data, gd.TabularPolicy(target), discount=0.9, confidence=0.9)
    text = str(estimate)
    assert "90% interval" in text and "verdict" in text and f"{estimate.value:.6g}" in text
    plain = json.loads(estimate.to_json())
    assert plain["value"] == estimate.value and plain["verdict"] == str(estimate.verdict)
    assert plain["diagnostics"]["rank"] == 10 and len(plain["diagnostics"]["checks"]) == 8
    assert [check["name"] for check in plain["checks"]] == [check.name for check in estimate.checks]
    assert len(plain["checks"]) > len(plain["diagnostics"]["checks"])
    assert f"<strong>{str(estimate.verdict).capitalize()}.</strong>" in estimate._repr_html_()
    assert len(estimate.plot().axes) == 2


def test_poor_overlap_is_not_trusted(rng):
    """The target goes where one row in ten thousand is."""
    mdp, _, _ = random_problem(0)
    target = np.tile([0.0, 1.0], (5, 1))
    data_dist = np.tile([0.9999, 0.0001], (5, 1)) / 5
    data = mdp.sample(20_000, data_dist, np.random.default_rng(3))
    assert len(np.unique(data.states[data.actions == 1])) < 5, "some pairs are not there at all"
    estimate = gd.evaluate(data, gd.TabularPolicy(target), discount=0.9)
    assert estimate.verdict is gd.Verdict.DO_NOT_TRUST and known(known(estimate.diagnostics).unlogged) > 0.1
    with pytest.raises(gd.InputError, match="never contains"):
        gd.evaluate(data, gd.TabularPolicy(target), discount=0.9, functions=gd.Tabular(5, 2, stand_in=False))


def test_notes_say_what_the_interval_does_not_know(setting):
    mdp, target, data = setting
    ridged = gd.evaluate(data, gd.TabularPolicy(target), gd.GradientDICE(0.9, ridge=0.1), functions=gd.Tabular(5, 2))
    assert any("ridge" in note for note in ridged.notes)
    linear = gd.evaluate(
        data, gd.TabularPolicy(target), discount=0.9, functions=gd.LinearFeatures(lambda s, a: s[:, None])
    )
    assert any("features" in note for note in linear.notes)


BAD = [
    ({"discount": None}, "Give a discount"),
    ({"discount": 1.5}, "discount must lie in"),
    ({"discount": float("nan")}, "discount"),
    ({"estimator": gd.GradientDICE(0.9), "discount": 0.8}, "contradicts"),
    ({"confidence": 0.0}, "confidence"),
    ({"confidence": 1.0}, "confidence"),
    ({"policy": np.full((5, 2), 0.5)}, "policy must be a"),
    (
        {"policy": gd.TabularPolicy(np.full((3, 2), 0.5))},
        "states must lie in 0 to 2; row 0 is 3. The policy's table.*must have a row for each state",
    ),
    (
        {"policy": gd.TabularPolicy(np.full((5, 3), 1 / 3)), "functions": gd.Tabular(5, 3, stand_in=False)},
        "never contains",
    ),
    ({"policy": gd.TabularPolicy(np.full((5, 1), 1.0))}, "actions must lie in"),
    ({"policy": gd.DiscretePolicy(lambda s: np.full((len(s), 2), 0.4), 2)}, "row 0 sums to 0.8"),
    ({"policy": gd.DiscretePolicy(lambda s: np.full((len(s), 3), 1 / 3), 2)}, "returned shape"),
    ({"policy": gd.DiscretePolicy(lambda s: np.where(s[:, None] == 2, np.nan, 0.5) * np.ones(2), 2)}, "not finite"),
    ({"policy": gd.LoggedPolicy(np.full((4, 2), 0.5))}, "given at 4 next states"),
    ({"policy": gd.LoggedPolicy(np.full((5000, 2), 0.5))}, "initial"),
    ({"estimator": gd.LSTDQ(0.9), "discount": None, "solver": gd.ClosedForm()}, "LSTDQ takes no solver"),
    ({"estimator": gd.WIS(0.9), "discount": None, "solver": gd.PrimalDual(10)}, "WIS takes no solver"),
    ({"checkpoint": "folder"}, "checkpoint= is for training"),
    ({"checkpoint": "folder", "solver": gd.ClosedForm()}, "checkpoint= is for training"),
    ({"interval": gd.BootstrapInterval(), "solver": gd.PrimalDual(10)}, "interval= cannot be used"),
    (
        {
            "policy": gd.SamplingPolicy(lambda s, rng: 1.0 * s[:3]),
            "functions": gd.LinearFeatures(lambda s, a: s[:, None]),
        },
        "one row per state",
    ),
    ({"functions": gd.LinearFeatures(lambda s, a: s)}, r"must return \(n, K\)"),
    ({"functions": gd.LinearFeatures(lambda s, a: np.full((len(s), 2), np.inf))}, "not finite"),
    ({"estimator": gd.GenDICE(0.9, ridge=0.1), "discount": None}, "no closed form"),
    ({"estimator": gd.GenDICE(1.0, norm_penalty=0.0), "discount": None}, "no closed form"),
    ({"estimator": gd.DualDICE(0.9, ridge=0.1), "discount": None}, "takes no ridge"),
    ({"estimator": gd.DualDICE(1.0), "discount": None}, "ratio of 0 everywhere"),
    (
        {"estimator": gd.GenDICE(0.9), "discount": None, "functions": gd.LinearFeatures(lambda s, a: s[:, None])},
        "no closed form",
    ),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_calls_are_refused(setting, change, message):
    mdp, target, data = setting
    given = {"policy": gd.TabularPolicy(target), "discount": 0.9, **change}
    with pytest.raises(gd.InputError, match=message):
        gd.evaluate(data, given.pop("policy"), given.pop("estimator", None), **given)


def test_a_log_without_initial_states_needs_discount_1(setting):
    mdp, target, data = setting
    bare = replace(data, initial_states=None)
    with pytest.raises(gd.InputError, match="initial"):
        gd.evaluate(bare, gd.TabularPolicy(target), discount=0.9)
    assert gd.evaluate(bare, gd.TabularPolicy(target), discount=1.0).status.ok
    columns: Any = {"states": [1]}
    with pytest.raises(gd.InputError, match="must be Transitions"):
        gd.evaluate(columns, gd.TabularPolicy(target), discount=0.9)


def test_features_that_miss_something_are_seen(rng):
    """Merging neighbouring states of a random MDP biases the value; the misfit says so, and right features have none."""
    from gradientdice_studies.coverage.problems import problems
    from gradientdice_studies.coverage.run import merged_features

    problem = problems()["random 8×3"]()
    data, policy = problem.independent(3000, rng), gd.TabularPolicy(problem.target)
    wrong = gd.evaluate(data, policy, discount=0.9, functions=gd.LinearFeatures(merged_features(8, 3)))
    right = gd.evaluate(data, policy, discount=0.9, functions=gd.LinearFeatures(lambda s, a: np.eye(24)[s * 3 + a]))
    assert known(wrong.diagnostics).bellman_misfit > 10 and wrong.verdict is gd.Verdict.DO_NOT_TRUST
    assert known(right.diagnostics).bellman_misfit < 3 and right.verdict is gd.Verdict.TRUST
    assert abs(wrong.value - problem.truth(0.9)) > 4 * known(wrong.standard_error)


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
