"""A table restricted to what the log contains."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import gradientdice as gd
from gradientdice.estimators.saddle.estimator import sparse_answer
from gradientdice.problem.support import restricted_to_logged
from problems import known, log_of, made, random_problem


def both(data, policy, discount, table=None):
    problem = gd.Problem(data, policy, table or gd.Tabular(5, 2))
    dense = gd.GradientDICE(discount).answer(problem)
    assert dense.solution is not None, "small tables are solved densely"
    return dense, sparse_answer(problem, discount)


def test_logged_actions_stand_in_for_those_never_logged():
    """Without action 1 in state 2 the answer is that of a policy that does not take it there; the share is exact."""
    data, policy = log_of("plain")
    kept = ~((data.states == 2) & (data.actions == 1))
    some = gd.Transitions(
        data.states[kept], data.actions[kept], data.rewards[kept], data.next_states[kept], initial_states=[0]
    )
    other = np.array(policy)
    other[2] = [1.0, 0.0]
    for discount in (0.9, 1.0):
        dense, _ = both(some, gd.TabularPolicy(other), discount)
        problem = gd.Problem(some, policy, gd.Tabular(5, 2))
        sparse = sparse_answer(problem, discount)
        assert sparse.value == pytest.approx(dense.value, rel=1e-9)
        visits = np.sum(known(dense.ratio)[some.states == 2]) / len(some)
        assert problem.unlogged(discount) == pytest.approx(visits * np.asarray(policy)[2, 1], rel=1e-9)


def test_in_place_of_missing_actions_the_policy_does_what_the_log_does():
    policy = np.array([[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.7, 0.2, 0.1]])
    counts = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 3.0], [4.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    kept, missing = restricted_to_logged(policy, counts)
    np.testing.assert_allclose(missing, [0.0, 0.7, 1.0, 1.0], atol=1e-15)
    expected = [[0.7, 0.2, 0.1], [0.0, 0.2 + 0.7 / 4, 0.1 + 0.7 * 3 / 4], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    np.testing.assert_allclose(kept, expected, rtol=1e-12)


def test_a_rare_way_out_is_not_lost():
    """State 1's only way on that the policy likes is not logged; the log left it all the same, and so the answer does."""
    circling = [(1, 1, 0.0, 1)] * 40
    rows = [(0, 0, 1.0, 0), (0, 1, 1.0, 1), *circling, (1, 2, 0.0, 0)] * 5
    states, actions, rewards, following = (np.array(column) for column in zip(*rows, strict=True))
    data = gd.Transitions(states, actions.astype(int), rewards, following)
    policy = gd.TabularPolicy([[0.9, 0.1, 0.0], [0.45, 0.55, 0.0]])
    estimate = gd.evaluate(data, policy, discount=1.0, functions=gd.Tabular(2, 3, stand_in=True))
    leaving = 0.45 / 41
    assert estimate.value == pytest.approx(leaving / (0.1 + leaving))
    assert str(estimate.verdict) == "do not trust"


def test_a_state_that_the_log_never_leaves_starts_again():
    data = gd.Transitions([0, 0, 1, 1], [0, 0, 0, 0], [1.0, 1.0, 2.0, 2.0], [1, 1, 0, 2], initial_states=[0])
    problem = gd.Problem(data, gd.TabularPolicy(np.ones((3, 1))), gd.Tabular(3, 1))
    answer = sparse_answer(problem, 0.5)
    # d(0) = ½ + ½d(1),  d(1) = ½d(0): half of the steps from state 1 are led to state 0.
    assert answer.value == pytest.approx(2 / 3 * 1.0 + 1 / 3 * 2.0)
    assert problem.unlogged(0.5) == pytest.approx(0.5 * 0.5 * 1 / 3)


def test_stand_in_is_a_yes_or_a_no():
    yes: Any = "yes"
    with pytest.raises(gd.InputError, match="stand_in must be True or False, not 'yes'"):
        gd.Tabular(2, 2, stand_in=yes)


def test_a_small_table_is_restricted_like_a_large_one():
    data = gd.Transitions([0, 0, 1, 1], [0, 0, 0, 0], [1.0, 1.0, 2.0, 2.0], [1, 1, 0, 0], initial_states=[0])
    policy = gd.TabularPolicy([[0.8, 0.2], [0.5, 0.5]])
    with pytest.raises(gd.InputError, match="stand_in=True"):
        gd.evaluate(data, policy, discount=0.9, functions=gd.Tabular(2, 2, stand_in=False))
    estimate = gd.evaluate(data, policy, discount=0.9)
    visits = np.linalg.solve([[1, -0.9], [-0.9, 1]], [0.1, 0])
    assert estimate.value == pytest.approx(visits @ [1.0, 2.0])
    assert known(estimate.diagnostics).unlogged == pytest.approx(visits @ [0.2, 0.5])
    assert str(estimate.verdict) == "do not trust"


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_other_estimators_stand_in_alike(discount):
    """On a thin log of a small table all that are the same without gaps are the same with them."""
    mdp = gd.mdp.grid_walk(5)
    target, behavior = gd.mdp.grid_walk_policies(mdp)
    data = mdp.rollout(behavior, 6, 50, np.random.default_rng(3))
    table = gd.Tabular(25, 4)
    first = gd.evaluate(data, gd.TabularPolicy(target), gd.GradientDICE(discount), functions=table)
    assert known(known(first.diagnostics).unlogged) > 0
    for estimator in (gd.LSTDQ(discount), gd.FQE(discount), gd.MWL(discount), gd.MQL(discount)):
        other = gd.evaluate(data, gd.TabularPolicy(target), estimator, functions=table)
        assert other.value == pytest.approx(first.value, rel=1e-7), estimator


@pytest.mark.parametrize(("kind", "error"), [(gd.DRL, 0.1), (gd.GradientDICE, 0.1), (gd.DR, 10.0)])
def test_steps_that_are_led_elsewhere_keep_the_starts(kind, error):
    """Most states of this log are seen once: nearly all steps are led to a start, and the rows are in order still.

    The policy is the behaviour, whose mean reward is 1. DR's ratios are those of the restricted policy, and far off.
    """
    rng = np.random.default_rng(0)
    states = np.zeros((12, 31), dtype=int)
    for step in range(30):
        states[:, step + 1] = 0 if step % 5 == 4 else rng.integers(1, 400, 12)
    actions, episodes = rng.integers(0, 3, 360), np.repeat(np.arange(12), 30)
    data = gd.Transitions(
        states[:, :-1].ravel(), actions, actions.astype(float), states[:, 1:].ravel(), episodes=episodes,
        behavior_log_probs=np.full(360, np.log(1 / 3)),
    )  # fmt: skip
    policy = gd.TabularPolicy(np.full((400, 3), 1 / 3))
    found = gd.evaluate(data, policy, kind(0.9), functions=gd.Tabular(400, 3, stand_in=True))
    assert str(found.verdict) == "do not trust"
    assert found.value == pytest.approx(1.0, abs=error)


def test_cross_fitted_answers_need_a_pair_in_two_parts_only():
    mdp = gd.mdp.grid_walk(5)
    target, behavior = gd.mdp.grid_walk_policies(mdp)
    data = mdp.rollout(behavior, 40, 50, np.random.default_rng(3))
    table, policy = gd.Tabular(25, 4), gd.TabularPolicy(target)
    truth = mdp.value(target, 0.9)
    for estimator in (gd.DRL(0.9), gd.DR(0.9), gd.WDR(0.9), gd.MAGIC(0.9)):
        assert gd.evaluate(data, policy, estimator, functions=table).value == pytest.approx(truth, abs=0.1), estimator


def with_pocket(times: int) -> tuple[gd.Transitions, gd.Transitions, gd.TabularPolicy, gd.TabularPolicy]:
    """A log; the same with rows in states 5 and 6, which lead to each other only; and policies for both."""
    data, policy = log_of("plain", rows=2000)
    pocket = np.tile([[5, 0, 6], [5, 1, 6], [6, 0, 5], [6, 1, 5]], (times, 1))
    wider = gd.TabularPolicy(np.vstack([np.asarray(policy), np.full((2, 2), 0.5)]))
    more = gd.Transitions(
        np.append(data.states, pocket[:, 0]),
        np.append(data.actions, pocket[:, 1]),
        np.append(data.rewards, np.full(4 * times, 50.0)),
        np.append(data.next_states, pocket[:, 2]),
    )
    return data, more, policy, wider


def test_a_small_pocket_is_left():
    """It is there by chance."""
    data, more, policy, wider = with_pocket(1)
    entry = np.array(more.next_states)
    entry[0] = 5
    found = gd.evaluate(replace(more, next_states=entry), wider, discount=1.0)
    assert found.value == pytest.approx(gd.evaluate(data, policy, discount=1.0).value, abs=0.02)
    assert 0 < known(known(found.diagnostics).unlogged) < 0.005 and np.all(known(found.ratio)[2000:] == 0)


def test_a_large_pocket_is_refused():
    """It is there by nature."""
    _, more, _, wider = with_pocket(200)
    with pytest.raises(gd.InputError, match="not ergodic"):
        gd.evaluate(more, wider, discount=1.0)


@given(arrays(np.float64, (4, 3), elements=st.floats(0.01, 1.0)), arrays(np.int64, (4, 3), elements=st.integers(0, 3)))
def test_a_restricted_policy_is_a_policy_over_logged_actions(raw, counts):
    policy = raw / raw.sum(axis=1, keepdims=True)
    kept, missing = restricted_to_logged(policy, counts.astype(float))
    np.testing.assert_allclose(kept.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(missing, (policy * (counts == 0)).sum(axis=1), atol=1e-15)
    some = counts.any(axis=1)
    assert (kept[some][counts[some] == 0] == 0).all() and (kept[some] >= (policy * (counts > 0))[some] - 1e-12).all()
    whole = counts.all(axis=1)
    np.testing.assert_allclose(kept[whole], policy[whole], rtol=1e-12)
    # Restricting twice is restricting once.
    again, nothing = restricted_to_logged(kept[some], counts[some].astype(float))
    np.testing.assert_allclose(again, kept[some], rtol=1e-12)
    assert nothing.sum() == 0


WITH_FUNCTIONS = ["lstdq", "fqe", "mwl", "mql", "regularized-lagrangian", "drl"]


@pytest.fixture(scope="module")
def log():
    mdp, target, _ = random_problem(0)
    return mdp, target, mdp.rollout(np.full((5, 2), 0.5), 200, 40, np.random.default_rng(1))


@pytest.mark.parametrize("name", [*WITH_FUNCTIONS, "bch", "gem"])
def test_steps_that_were_never_logged_reach_the_verdict(name):
    mdp, target, _ = random_problem(0)
    behavior, wanted = np.full((5, 2), 0.5), np.array(target)
    behavior[2], wanted[2] = [1.0, 0.0], [0.0, 1.0]
    data = mdp.rollout(behavior, 300, 40, np.random.default_rng(1))
    table = gd.Tabular(5, 2, stand_in=True)
    estimate = gd.evaluate(data, gd.TabularPolicy(wanted), made(name, 0.9), functions=table)
    first = gd.evaluate(data, gd.TabularPolicy(wanted), gd.GradientDICE(0.9), functions=table)
    assert (
        known(estimate.diagnostics).unlogged == pytest.approx(known(first.diagnostics).unlogged)
        and known(known(first.diagnostics).unlogged) > 0.05
    )
    assert str(estimate.verdict) == "do not trust"


def test_a_logged_policy_is_the_same_policy():
    states = np.tile([0, 1], 500)
    actions = np.random.default_rng(0).integers(0, 2, 1000)
    following = np.where(states == 0, 1, 0)
    following[999] = 2  # a state that the log never leaves
    data = gd.Transitions(states, actions, actions.astype(float), following)
    table = np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
    functions = gd.Tabular(3, 2, stand_in=True)
    values = [
        gd.evaluate(data, policy, gd.GradientDICE(1.0), functions=functions).value
        for policy in (gd.TabularPolicy(table), gd.LoggedPolicy(next_probabilities=table[following]))
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-12) and values[0] == pytest.approx(0.3, abs=0.01)
    changing = np.array(table[following])
    changing[0] = [0.2, 0.8]
    with pytest.raises(gd.InputError, match="differ from others for the same state"):
        gd.evaluate(data, gd.LoggedPolicy(next_probabilities=changing), gd.GradientDICE(1.0), functions=functions)


def test_rows_of_weight_0_are_as_if_they_were_not_there(log):
    _, target, data = log
    dropped = (data.states == 2) & (data.actions == 1)
    functions, policy = gd.Tabular(5, 2, stand_in=True), gd.TabularPolicy(target)
    estimate = gd.evaluate(
        replace(data, weights=np.where(dropped, 0.0, 1.0)), policy, discount=0.9, functions=functions
    )
    kept = gd.Transitions(
        data.states[~dropped],
        data.actions[~dropped],
        data.rewards[~dropped],
        data.next_states[~dropped],
        initial_states=data.start_states[~dropped[data.first_rows]],
    )
    assert estimate.value == pytest.approx(gd.evaluate(kept, policy, discount=0.9, functions=functions).value, rel=1e-9)
    assert estimate.to_json()


def test_starts_that_were_never_logged_count(log):
    _, target, data = log
    wider = gd.TabularPolicy(np.vstack([target, [[1.0, 0.0]]]))
    table = gd.Tabular(6, 2, stand_in=True)
    half = replace(data, episodes=None, initial_states=np.array([0, 5]))
    assert known(gd.evaluate(half, wider, discount=0.5, functions=table).diagnostics).unlogged == pytest.approx(0.25)
    with pytest.raises(gd.InputError, match="no row in any of the states"):
        gd.evaluate(replace(half, initial_states=np.array([5])), wider, discount=0.5, functions=table)


def test_unsigned_numbers(log):
    _, target, data = log
    same = replace(data, actions=data.actions.astype(np.uint64), states=data.states.astype(np.uint64))
    for estimator in (gd.LSTDQ(0.9), gd.WPDIS(0.5)):
        values = [
            gd.evaluate(d, gd.TabularPolicy(target), estimator, functions=gd.Tabular(5, 2, stand_in=True)).value
            for d in (data, same)
        ]
        assert values[0] == values[1]


def continuous(rng, n=300, episodes=None, actions=2):
    states = rng.normal(size=(n, 2))
    return gd.Transitions(
        states, rng.integers(0, actions, n), rng.normal(size=n), states, states[:50], episodes=episodes
    )


def test_an_action_that_was_never_logged_is_refused_for_every_function_class(rng):
    data = replace(continuous(rng), actions=np.zeros(300, dtype=int))
    policy = gd.DiscretePolicy(lambda s: np.tile([0.9, 0.1], (len(s), 1)), 2)
    one_hot = gd.LinearFeatures(lambda s, a: np.eye(2)[a])
    solver = gd.PrimalDual(10)
    options: dict[str, Any]
    for options in ({}, {"functions": one_hot}, {"functions": one_hot, "solver": solver}, {"functions": gd.MLP((4,))},
                    {"functions": gd.MLP((4,)), "solver": solver}):  # fmt: skip
        with pytest.raises(gd.InputError, match="takes action 1, which the log never contains"):
            gd.evaluate(data, policy, discount=0.9, **options)
    for functions in (one_hot, gd.MLP((4,))):
        with pytest.raises(gd.InputError, match="takes action 1, which the log never contains"):
            gd.sweep(data, policy, gd.GradientDICE(0.9), functions, solver, seeds=1, progress=False)


@pytest.mark.parametrize("solver", [None, gd.PrimalDual(10), gd.ProjectedPrimalDual(10)], ids=repr)
def test_a_feature_that_only_the_policy_reaches_is_refused_by_every_solver(solver, rng):
    """Each action is logged, but not where the policy takes it."""
    data = continuous(rng)
    data = replace(data, actions=(data.states[:, 0] > 0).astype(int))
    cell = gd.LinearFeatures(lambda s, a: np.eye(4)[2 * (s[:, 0] > 0) + a])
    policy = gd.DiscretePolicy(lambda s: np.full((len(s), 2), 0.5), 2)
    with pytest.raises(gd.InputError, match="Feature 2 is 0 in every logged row"):
        gd.evaluate(data, policy, gd.GradientDICE(0.9), functions=cell, solver=solver)
