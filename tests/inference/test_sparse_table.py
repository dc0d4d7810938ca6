"""Large tables, solved sparsely: the same answers as the dense closed form, in memory that follows the log."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from conftest import random_problem
from gradientdice.functions.stream import LogDesign
from gradientdice.functions.support import on_what_is_logged
from gradientdice.inference import linear, sparse_table
from gradientdice.inference.intervals import independent_shares, standard_error


def log_of(kind, seed=0, rows=600):
    mdp, target, data_dist = random_problem(seed)
    rng = np.random.default_rng(seed)
    data = mdp.sample(rows, data_dist, rng)
    if kind == "ending":
        data = replace(data, terminated=rng.random(rows) < 0.2)
    if kind == "episodes":
        data = mdp.rollout(np.full((5, 2), 0.5), rows // 6, 6, rng)
        data = replace(data, initial_states=None, truncated=None, terminated=np.arange(rows) % 6 == 5)
    if kind == "weighted":
        data = replace(data, weights=rng.integers(1, 4, size=rows).astype(float))
    return data, gd.TabularPolicy(target)


def both(data, policy, discount, table=None):
    log = LogDesign(data, policy, table or gd.Tabular(5, 2))
    dense = linear.linear_answer(log, gd.GradientDICE(discount), gd.ClosedForm())
    return dense, sparse_table.sparse_table_answer(log, discount)


@pytest.mark.parametrize("kind", ["plain", "ending", "episodes", "weighted"])
@pytest.mark.parametrize("discount", [0.0, 0.5, 0.95, 1.0])
def test_agrees_with_the_dense_closed_form(kind, discount):
    data, policy = log_of(kind)
    dense, sparse = both(data, policy, discount)
    assert sparse.value == pytest.approx(dense.value, rel=1e-9)
    np.testing.assert_allclose(sparse.ratio, dense.ratio, rtol=1e-7, atol=1e-9)
    assert sparse.mean_ratio == pytest.approx(1.0, abs=1e-9)
    errors = [standard_error(independent_shares(answer.shares, data)) for answer in (dense, sparse)]
    assert errors[1] == pytest.approx(errors[0], rel=1e-6)
    weights = np.ones(len(data)) if data.weights is None else data.weights
    assert np.average(sparse.ratio * data.rewards, weights=weights) == pytest.approx(sparse.value, rel=1e-9)


def test_a_state_that_nothing_reaches_may_lack_actions():
    """At discount 1 it must not count as a class of its own."""
    data, policy = log_of("plain")
    more = gd.Transitions(
        np.append(data.states, 5),
        np.append(data.actions, 0),
        np.append(data.rewards, 9.0),
        np.append(data.next_states, 0),
    )
    wider = gd.TabularPolicy(np.vstack([np.asarray(policy), [0.0, 1.0]]))
    dense, _ = both(data, policy, 1.0)
    _, sparse = both(more, wider, 1.0, gd.Tabular(6, 2))
    assert sparse.value == pytest.approx(dense.value, rel=1e-9)
    assert sparse.ratio[-1] == 0


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
        sparse = sparse_table.sparse_table_answer(LogDesign(some, policy, gd.Tabular(5, 2)), discount)
        assert sparse.value == pytest.approx(dense.value, rel=1e-9)
        visits = np.sum(dense.ratio[some.states == 2]) / len(some)
        assert sparse.unlogged == pytest.approx(visits * np.asarray(policy)[2, 1], rel=1e-9)


def test_in_place_of_missing_actions_the_policy_does_what_the_log_does():
    policy = np.array([[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.7, 0.2, 0.1]])
    counts = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 3.0], [4.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    kept, missing = on_what_is_logged(policy, counts)
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
    log = LogDesign(data, gd.TabularPolicy(np.ones((3, 1))), gd.Tabular(3, 1, stand_in=True))
    answer = sparse_table.sparse_table_answer(log, 0.5)
    # d(0) = ½ + ½d(1),  d(1) = ½d(0): half of the steps from state 1 are led to state 0.
    assert answer.value == pytest.approx(2 / 3 * 1.0 + 1 / 3 * 2.0)
    assert answer.unlogged == pytest.approx(0.5 * 0.5 * 1 / 3)


def test_refusals():
    data, policy = log_of("plain")
    with pytest.raises(gd.InputError, match="needs initial states"):
        sparse_table.sparse_table_answer(LogDesign(replace(data, initial_states=None), policy, gd.Tabular(5, 2)), 0.9)
    with pytest.raises(gd.InputError, match="states must lie in 0 to 3"):
        sparse_table.sparse_table_answer(LogDesign(data, policy, gd.Tabular(4, 2)), 0.9)


def test_evaluate_takes_a_large_table_by_itself():
    mdp = gd.mdp.taxi_world()
    target, _ = gd.mdp.taxi_policies(mdp)
    data = mdp.sample(200_000, np.full(mdp.reward.shape, 1 / mdp.reward.size), np.random.default_rng(0))
    estimate = gd.evaluate(data, gd.TabularPolicy(target), discount=0.95)
    low, high = estimate.interval
    assert low < mdp.value(target, 0.95) < high
    assert any("sparsely" in note for note in estimate.notes)
    same = gd.evaluate(data, gd.TabularPolicy(target), gd.LSTDQ(0.95))
    assert same.value == pytest.approx(estimate.value, rel=1e-9)
    assert estimate.diagnostics.unlogged < 0.001


def test_what_has_no_sparse_form_says_so():
    mdp = gd.mdp.taxi_world()
    target, _ = gd.mdp.taxi_policies(mdp)
    data = mdp.sample(1000, np.full(mdp.reward.shape, 1 / mdp.reward.size), np.random.default_rng(0))
    with pytest.raises(gd.InputError, match="a dense system of 12,000 features"):
        gd.evaluate(data, gd.TabularPolicy(target), gd.FQE(0.9))


def test_stand_in_is_a_yes_or_a_no():
    with pytest.raises(gd.InputError, match="stand_in must be True, False or None, not 'yes'"):
        gd.Tabular(2, 2, stand_in="yes")


def test_a_small_table_stands_in_if_asked():
    data = gd.Transitions([0, 0, 1, 1], [0, 0, 0, 0], [1.0, 1.0, 2.0, 2.0], [1, 1, 0, 0], initial_states=[0])
    policy = gd.TabularPolicy([[0.8, 0.2], [0.5, 0.5]])
    with pytest.raises(gd.InputError, match="stand_in=True"):
        gd.evaluate(data, policy, discount=0.9)
    estimate = gd.evaluate(data, policy, discount=0.9, functions=gd.Tabular(2, 2, stand_in=True))
    visits = np.linalg.solve([[1, -0.9], [-0.9, 1]], [0.1, 0])
    assert estimate.value == pytest.approx(visits @ [1.0, 2.0])
    assert estimate.diagnostics.unlogged == pytest.approx(visits @ [0.2, 0.5])
    assert str(estimate.verdict) == "do not trust"


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_other_estimators_stand_in_alike(discount):
    """On a thin log of a small table all that are the same without gaps are the same with them."""
    mdp = gd.mdp.grid_walk(5)
    target, behavior = gd.mdp.grid_walk_policies(mdp)
    data = mdp.rollout(behavior, 6, 50, np.random.default_rng(3))
    table = gd.Tabular(25, 4, stand_in=True)
    with pytest.raises(gd.InputError, match="never shows"):
        gd.evaluate(data, gd.TabularPolicy(target), gd.FQE(discount))
    first = gd.evaluate(data, gd.TabularPolicy(target), gd.GradientDICE(discount), functions=table)
    assert first.diagnostics.unlogged > 0
    for estimator in (gd.LSTDQ(discount), gd.FQE(discount), gd.MWL(discount), gd.MQL(discount)):
        other = gd.evaluate(data, gd.TabularPolicy(target), estimator, functions=table)
        assert other.value == pytest.approx(first.value, rel=1e-7), estimator


@pytest.mark.parametrize("kind", [gd.DRL, gd.DR, gd.GradientDICE])
def test_steps_that_are_led_elsewhere_keep_the_starts(kind):
    """Most states of this log are seen once: nearly all steps are led to a start, and the rows are in order still."""
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
    assert kind is gd.DR or 0.5 < found.value < 1.5


def test_cross_fitted_answers_need_a_pair_in_two_parts_only():
    mdp = gd.mdp.grid_walk(5)
    target, behavior = gd.mdp.grid_walk_policies(mdp)
    data = mdp.rollout(behavior, 40, 50, np.random.default_rng(3))
    table, policy = gd.Tabular(25, 4, stand_in=True), gd.TabularPolicy(target)
    with pytest.raises(gd.InputError, match="never shows"):
        gd.evaluate(data, policy, gd.DRL(0.9))
    truth = mdp.value(target, 0.9)
    for estimator in (gd.DRL(0.9), gd.DR(0.9), gd.WDR(0.9), gd.MAGIC(0.9)):
        assert gd.evaluate(data, policy, estimator, functions=table).value == pytest.approx(truth, abs=0.1), estimator


def test_a_small_pocket_is_left_and_a_large_one_refused():
    """States 5 and 6 lead to each other only: by chance if few rows are there, by nature if many."""
    data, policy = log_of("plain", rows=2000)
    wider = gd.TabularPolicy(np.vstack([np.asarray(policy), np.full((2, 2), 0.5)]))
    for extra, refused in ((1, False), (200, True)):
        pocket = np.tile([[5, 0, 6], [5, 1, 6], [6, 0, 5], [6, 1, 5]], (extra, 1))
        entry = np.append(data.next_states, pocket[:, 2])
        entry[0] = 5
        log = gd.Transitions(
            np.append(data.states, pocket[:, 0]),
            np.append(data.actions, pocket[:, 1]),
            np.append(data.rewards, np.full(4 * extra, 50.0)),
            entry,
        )
        design = LogDesign(log, wider, gd.Tabular(7, 2, stand_in=True))
        if refused:
            with pytest.raises(gd.InputError, match="not ergodic"):
                sparse_table.sparse_table_answer(
                    LogDesign(
                        replace(log, next_states=np.append(data.next_states, pocket[:, 2])), wider, design.functions
                    ),
                    1.0,
                )
            continue
        answer = sparse_table.sparse_table_answer(design, 1.0)
        plain, _ = both(data, policy, 1.0)
        assert answer.value == pytest.approx(plain.value, abs=0.02)
        assert 0 < answer.unlogged < 0.005 and np.all(answer.ratio[2000:] == 0)
