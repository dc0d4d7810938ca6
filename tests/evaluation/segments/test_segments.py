"""`segments`: against the MDP's own values from each group of starts, and what adds up."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.mdp.finite import TabularMDP
from problems import known, ladder, leak, random_problem, rolled


def exact_moments_log(mdp, dist, copies=1):
    """A log whose frequencies are the MDP's own: every transition with its probability as weight."""
    states, actions = mdp.reward.shape
    pair, following = np.divmod(np.arange(states * actions * states), states)
    return gd.Transitions(
        pair // actions,
        pair % actions,
        mdp.reward.ravel()[pair],
        following,
        initial_states=np.repeat(np.arange(states), np.round(mdp.initial * 1000).astype(int)),
        weights=dist.ravel()[pair] * mdp.transition.reshape(-1)[np.arange(len(pair))],
    )


def with_starts(mdp, starts):
    """The MDP that starts in these states alone."""
    return TabularMDP(mdp.transition, mdp.reward, np.bincount(starts, minlength=mdp.num_states) / len(starts))


@pytest.mark.parametrize("estimator", [None, gd.GradientDICE(0.8), gd.DualDICE(0.8, power=2.0), gd.GenDICE(0.8)])
def test_a_tables_groups_of_starts_have_the_mdps_values(estimator):
    mdp, target, dist = random_problem(6)
    data = exact_moments_log(mdp, dist)
    starts = known(data.initial_states)
    groups = np.where(starts < 2, "low", "high")
    found = gd.segments(
        data, gd.TabularPolicy(target), estimator, by=groups, discount=0.8 if estimator is None else None
    )
    assert [group.group for group in found.groups] == ["high", "low"] and not found.has_rest
    for group, own in zip(found.groups, (starts >= 2, starts < 2), strict=True):
        assert group.value == pytest.approx(with_starts(mdp, starts[own]).value(target, 0.8), abs=1e-8)
        assert group.share == pytest.approx(own.mean()) and group.count == own.sum()
    assert sum(group.share * group.value for group in found.groups) == pytest.approx(found.whole.value, abs=1e-9)


def test_a_tables_groups_of_rows_have_the_mdps_occupancy():
    mdp, target, dist = random_problem(6)
    data = exact_moments_log(mdp, dist)
    for discount in (0.8, 1.0):
        begun = with_starts(mdp, known(data.initial_states))
        occupancy = begun.occupancy(target, discount)
        found = gd.segments(data, gd.TabularPolicy(target), by=data.states >= 2, of="rows", discount=discount)
        for group, own in zip(found.groups, (np.arange(5) < 2, np.arange(5) >= 2), strict=True):
            earned = float(np.sum((occupancy * mdp.reward)[own]))
            assert group.share == pytest.approx(occupancy[own].sum(), abs=1e-8)
            assert group.contribution == pytest.approx(earned, abs=1e-8)
            assert group.value == pytest.approx(earned / occupancy[own].sum(), abs=1e-7)
        assert found.total == pytest.approx(begun.value(target, discount), abs=1e-8) and not found.has_rest


@pytest.mark.parametrize("of", ["starts", "rows"])
@pytest.mark.parametrize("intercept", [True, False])
def test_with_features_the_groups_add_up(of, intercept):
    mdp, target, behavior, ends = leak(1)
    data = rolled((mdp, target, behavior, ends), 200, 12, 0)
    table = np.random.default_rng(5).normal(size=(4, 2, 4))
    if intercept:
        table[..., 0] = 1.0
    functions = gd.LinearFeatures(lambda states, actions: table[states, actions])
    found = gd.segments(data, gd.TabularPolicy(target), by=data.states, of=of, discount=0.9, functions=functions)
    assert len(found.groups) == 3 and abs(found.rest) < 1e-9 * max(1, abs(found.total))
    answer = gd.GradientDICE(0.9).answer(gd.Problem(data, gd.TabularPolicy(target), functions))
    assert found.total == pytest.approx(answer.value)


def test_one_group_is_the_whole_with_its_interval():
    mdp, target, dist = random_problem(6)
    data = mdp.sample(1000, dist, np.random.default_rng(0))
    whole = gd.evaluate(data, gd.TabularPolicy(target), discount=0.9)
    for of, size in (("starts", 1000), ("rows", 1000)):
        (group,) = gd.segments(data, gd.TabularPolicy(target), by=np.zeros(size), of=of, discount=0.9).groups
        np.testing.assert_allclose(
            [group.contribution, group.contribution_low, group.contribution_high],
            [whole.value, *known(whole.interval)],
            atol=1e-8,
        )
        assert group.share == pytest.approx(1)


def test_a_sparse_tables_groups_are_those_of_the_dense_one(monkeypatch):
    mdp, target, behavior, (end,) = ladder(1)
    data = mdp.rollout(behavior, 300, 10, np.random.default_rng(0), terminal=end)
    for of in ("starts", "rows"):
        dense = gd.segments(data, gd.TabularPolicy(target), by=data.states, of=of, discount=0.9).table.drop(
            columns="verdict"
        )
        with monkeypatch.context() as patched:
            patched.setattr("gradientdice.estimators.saddle.estimator.SPARSE_ABOVE", 0)
            sparse = gd.segments(data, gd.TabularPolicy(target), by=data.states, of=of, discount=0.9).table
            sparse = sparse.drop(columns="verdict")
        np.testing.assert_allclose(sparse.to_numpy(float), dense.to_numpy(float), rtol=1e-6, atol=1e-8)


def test_estimators_without_functions_have_groups_of_rows():
    mdp, target, behavior, (end,) = ladder(1)
    data = mdp.rollout(behavior, 300, 10, np.random.default_rng(0), terminal=end)
    found = gd.segments(data, gd.TabularPolicy(target), gd.WPDIS(0.9), by=data.actions, of="rows")
    assert not found.has_rest and found.total == pytest.approx(found.whole.value)


def test_continuous_states_add_up_too():
    """r = s, s' = s/2: the return from s is s / (1 − γ/2), so that starts are worth (1−γ)/(1−γ/2) times their mean."""
    rng = np.random.default_rng(0)
    states = rng.uniform(-1, 1, size=(1000, 1))
    actions = rng.integers(0, 2, 1000)
    data = gd.Transitions(states, actions, states[:, 0], 0.5 * states, initial_states=rng.uniform(-1, 1, (200, 1)))
    policy = gd.DiscretePolicy(lambda at: np.tile([0.3, 0.7], (len(at), 1)), 2)
    starts = known(data.initial_states)[:, 0]
    found = gd.segments(data, policy, by=starts > 0, discount=0.6, effort="quick")
    assert found.total == pytest.approx(found.whole.value, abs=1e-9) and not found.has_rest
    for group, own in zip(found.groups, (starts <= 0, starts > 0), strict=True):
        truth = 0.4 / 0.7 * starts[own].mean()
        assert group.value == pytest.approx(truth, abs=0.03)
    rows = gd.segments(data, policy, by=actions, of="rows", discount=0.6, effort="quick")
    assert rows.total == pytest.approx(rows.whole.value)
    assert [group.share for group in rows.groups] == pytest.approx([0.3, 0.7], abs=0.03)


def test_refusals():
    mdp, target, dist = random_problem(6)
    data = mdp.sample(100, dist, np.random.default_rng(0))
    policy = gd.TabularPolicy(target)
    with pytest.raises(gd.InputError, match="FQE has no Q and ratio that could be started from a group"):
        gd.segments(data, policy, gd.FQE(0.9), by=known(data.initial_states))
    with pytest.raises(gd.InputError, match="does not depend on the start"):
        gd.segments(data, policy, by=known(data.initial_states), discount=1.0)
    with pytest.raises(gd.InputError, match="by has 3 labels, and there are 100 starts"):
        gd.segments(data, policy, by=[0, 1, 2], discount=0.9)
    with pytest.raises(gd.InputError, match="by must have one dimension"):
        gd.segments(data, policy, by=np.zeros((100, 2)), of="rows", discount=0.9)
    many = mdp.sample(300, dist, np.random.default_rng(0))
    with pytest.raises(gd.InputError, match="by makes 300 groups"):
        gd.segments(many, policy, by=np.arange(300), of="rows", discount=0.9)
    with pytest.raises(gd.InputError, match='of must be "starts" or "rows"'):
        gd.segments(data, policy, by=data.states, of="states", discount=0.9)
    with pytest.raises(gd.InputError, match="needs initial states"):
        gd.segments(replace(data, initial_states=None), policy, by=data.states, discount=0.9)


def test_figure_and_words():
    mdp, target, dist = random_problem(6)
    data = mdp.sample(300, dist, np.random.default_rng(0))
    for of, by in (("starts", data.initial_states), ("rows", data.states)):
        found = gd.segments(data, gd.TabularPolicy(target), by=known(by), of=of, discount=0.9)
        assert len(found.plot().axes) == 2 and "whole" in str(found)
        assert float(found.table["contribution"].to_numpy().sum()) == pytest.approx(found.total)


def test_the_verdict_is_that_of_the_whole_and_few_units_are_a_caution():
    """1,500 episodes of the target itself, in which 12 begin at another place."""
    mdp, target, behavior, (end,) = ladder(1)
    data = mdp.rollout(target, 1500, 10, np.random.default_rng(0), terminal=end)
    whole = gd.evaluate(data, gd.TabularPolicy(target), discount=0.9)
    few = np.arange(1500) < 12
    for of, by in (("starts", few), ("rows", few[known(data.episodes)])):
        found = gd.segments(data, gd.TabularPolicy(target), by=by, of=of, discount=0.9)
        assert found.verdict is whole.verdict is gd.Verdict.TRUST and found.reasons == whole.reasons == []
        assert [group.units for group in found.groups] == [1488, 12]
        assert [str(group.verdict) for group in found.groups] == ["trust", "caution"]
        assert found.table["verdict"].tolist() == ["trust", "caution"] and "units" not in found.table
        assert found.notes == (
            "fewer than 20 independent units, so that the interval is hardly known: True (12)",
        ) and found.notes[0] in str(found)
        assert "\nverdict    trust\n" in str(found)
        assert "verdict: trust" in found.plot().axes[0].get_title(loc="left")
        again = pickle.loads(pickle.dumps(found))
        assert str(again) == str(found)


def test_no_group_is_trusted_more_than_the_whole():
    mdp, target, behavior, (end,) = ladder(1)
    data = mdp.rollout(behavior, 15, 10, np.random.default_rng(0), terminal=end)
    for of, by in (("starts", data.start_states), ("rows", data.actions)):
        found = gd.segments(data, gd.TabularPolicy(target), by=known(by), of=of, discount=0.9)
        assert found.verdict is gd.Verdict.DO_NOT_TRUST and found.reasons == found.whole.reasons != []
        assert {group.verdict for group in found.groups} == {gd.Verdict.DO_NOT_TRUST}
        assert f"  because  {found.reasons[0]}" in str(found)


def test_units_of_a_group_are_starts_that_are_given_and_copies_are_one():
    mdp, target, dist = random_problem(6)
    data = mdp.sample(100, dist, np.random.default_rng(0))
    starts = np.repeat(np.arange(5), [30, 2, 5, 20, 19])
    found = gd.segments(replace(data, initial_states=starts), gd.TabularPolicy(target), by=starts, discount=0.9)
    assert [group.units for group in found.groups] == [30, 2, 5, 20, 19]
    assert "1 (2), 2 (5), 4 (19)" in found.notes[0]
    same = np.random.default_rng(0).normal(size=100)
    twice = gd.Transitions(
        *(np.concatenate([column, column]) for column in (data.states, data.actions, same, data.next_states)),
        initial_states=starts,
        episodes=np.repeat(np.arange(20), 10),
    )
    rows = gd.segments(twice, gd.TabularPolicy(target), by=np.zeros(200), of="rows", discount=0.9)
    assert rows.groups[0].units == 10 == twice.units.count


@pytest.mark.slow
@pytest.mark.parametrize("of", ["starts", "rows"])
def test_each_groups_interval_covers_as_often_as_it_says(of):
    """400 logs of independent rows: two groups' values, each covered in 92.5% to 97.5%."""
    mdp, target, dist = random_problem(6)
    halves = np.arange(5) < 2, np.arange(5) >= 2
    if of == "starts":
        cut = [np.where(half, mdp.initial, 0) for half in halves]
        truth = [TabularMDP(mdp.transition, mdp.reward, own / own.sum()).value(target, 0.9) for own in cut]
    else:
        occupancy = mdp.occupancy(target, 0.9)
        truth = [float(np.sum((occupancy * mdp.reward)[half]) / occupancy[half].sum()) for half in halves]
    hits = np.zeros(2)
    for seed in range(400):
        data = mdp.sample(500, dist, np.random.default_rng(seed))
        by = known(data.initial_states) if of == "starts" else data.states
        found = gd.segments(data, gd.TabularPolicy(target), by=by >= 2, of=of, discount=0.9)
        hits += [group.low < value < group.high for group, value in zip(found.groups, truth, strict=True)]
    print(of, hits / 400)
    assert ((0.925 <= hits / 400) & (hits / 400 <= 0.98)).all()
