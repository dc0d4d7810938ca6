"""The log as a sparse empirical MDP: the answers of the dense closed form, in memory proportional to the log."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import gradientdice as gd
from gradientdice.estimators.saddle.estimator import sparse_answer
from gradientdice.statistics.intervals import independent_shares, standard_error
from problems import known, log_of, random_problem


def both(data, policy, discount, table=None):
    problem = gd.Problem(data, policy, table or gd.Tabular(5, 2))
    dense = gd.GradientDICE(discount).answer(problem)
    assert dense.solution is not None, "small tables are solved densely"
    return dense, sparse_answer(problem, discount)


@pytest.mark.parametrize("kind", ["plain", "ending", "episodes", "weighted"])
@pytest.mark.parametrize("discount", [0.0, 0.5, 0.95, 1.0])
def test_agrees_with_the_dense_closed_form(kind, discount):
    data, policy = log_of(kind)
    dense, sparse = both(data, policy, discount)
    assert sparse.value == pytest.approx(dense.value, rel=1e-9)
    np.testing.assert_allclose(known(sparse.ratio), known(dense.ratio), rtol=1e-7, atol=1e-9)
    assert sparse.evidence.mean_ratio == pytest.approx(1.0, abs=1e-9)
    errors = [standard_error(independent_shares(known(answer.influence), data)) for answer in (dense, sparse)]
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
    assert known(sparse.ratio)[-1] == 0


def test_refusals():
    data, policy = log_of("plain")
    with pytest.raises(gd.InputError, match="needs initial states"):
        sparse_answer(gd.Problem(replace(data, initial_states=None), policy, gd.Tabular(5, 2)), 0.9)
    with pytest.raises(gd.InputError, match="states must lie in 0 to 3"):
        gd.Problem(data, policy, gd.Tabular(4, 2))


def test_evaluate_takes_a_large_table_by_itself():
    mdp = gd.mdp.taxi_world()
    target, _ = gd.mdp.taxi_policies(mdp)
    data = mdp.sample(200_000, np.full(mdp.reward.shape, 1 / mdp.reward.size), np.random.default_rng(0))
    estimate = gd.evaluate(data, gd.TabularPolicy(target), discount=0.95)
    low, high = known(estimate.interval)
    assert low < mdp.value(target, 0.95) < high
    assert any("sparse empirical MDP" in note for note in estimate.notes)
    same = gd.evaluate(data, gd.TabularPolicy(target), gd.LSTDQ(0.95))
    assert same.value == pytest.approx(estimate.value, rel=1e-9)
    assert known(known(estimate.diagnostics).unlogged) < 0.001


def test_what_has_no_sparse_form_says_so():
    mdp = gd.mdp.taxi_world()
    target, _ = gd.mdp.taxi_policies(mdp)
    data = mdp.sample(50_000, np.full(mdp.reward.shape, 1 / mdp.reward.size), np.random.default_rng(0))
    with pytest.raises(gd.InputError, match="a dense system of 11,[0-9]{3} features"):
        gd.evaluate(data, gd.TabularPolicy(target), gd.FQE(0.9))


@pytest.mark.parametrize("kind", [gd.DR, gd.WDR, gd.MAGIC, gd.DRL, gd.FQE, gd.MWL, gd.MQL])
def test_a_large_table_of_which_little_is_logged_is_open_to_all(kind):
    """20,000 pairs, of which the log has some hundred: only those cost anything."""
    places, rng = np.arange(10_000), np.random.default_rng(0)
    moves = np.stack([np.maximum(places - 1, 0), np.minimum(places + 1, 9_999)], axis=1)
    walk = gd.mdp.SparseMDP(
        csr_array((np.ones(20_000), (np.arange(20_000), moves.ravel()))), moves / 100.0, places == 0
    )
    data = walk.rollout(np.full((10_000, 2), 0.5), 100, 50, rng)
    target = np.tile([0.45, 0.55], (10_000, 1))
    estimate = gd.evaluate(data, gd.TabularPolicy(target), kind(0.9))
    assert known(estimate.diagnostics).num_features < 100
    assert estimate.value == pytest.approx(walk.value(target, 0.9), abs=0.002)


def test_the_ratio_from_some_starts_is_that_of_a_log_with_these_starts():
    mdp, target, dist = random_problem(3)
    data = mdp.sample(500, dist, np.random.default_rng(0))
    policy, starts = gd.TabularPolicy(target), known(data.initial_states)
    problem = gd.Problem(data, policy)
    model = problem.empirical(0.9)
    np.testing.assert_allclose(model.ratio_from(np.ones(500)), problem.tabular_solution(0.9).ratio)
    low = starts < 2
    own = gd.Problem(replace(data, initial_states=starts[low]), policy).tabular_solution(0.9)
    np.testing.assert_allclose(model.ratio_from(low.astype(float)), own.ratio, atol=1e-12)
