"""SparseMDP, against TabularMDP on small MDPs, by every way of solving, and against its own equations on large ones."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import chisquare

import gradientdice as gd
from gradientdice.mdp import markov_chains
from problems import random_problem

SMALL = {
    "random": lambda: random_problem(1)[0],
    "random, larger": lambda: random_problem(2, states=30, actions=3)[0],
    "Boyan, continuing": lambda: gd.mdp.boyan_chain("continuing"),
    "Boyan, episodic": lambda: gd.mdp.boyan_chain("episodic"),
    "maintenance": gd.mdp.machine_maintenance,
    "ModelWin": gd.mdp.model_win_mdp,
    "four rooms": gd.mdp.four_rooms,
    "one state": gd.mdp.single_state,
}


def sparse(mdp):
    return gd.mdp.SparseMDP(csr_array(mdp.transition.reshape(-1, mdp.num_states)), mdp.reward, mdp.initial)


def walk(states, forward=0.3, backward=0.3):
    """A lazy walk on a ring, one action."""
    here = np.arange(states)
    places = (np.tile(here, 3), np.concatenate([here, (here + 1) % states, (here - 1) % states]))
    shares = np.repeat([1 - forward - backward, forward, backward], states)
    return gd.mdp.SparseMDP(csr_array((shares, places)), np.cos(here)[:, None], np.eye(1, states)[0])


@pytest.fixture(params=["as chosen", "factorised", "iterated"])
def way(request, monkeypatch):
    """Small chains are solved as large ones would be."""
    if request.param != "as chosen":
        monkeypatch.setattr(markov_chains, "MAX_GTH", 1)
    if request.param == "iterated":
        monkeypatch.setattr(markov_chains, "MAX_FILL", 0)
        monkeypatch.setattr(markov_chains, "splu", None)
    if request.param == "factorised":
        monkeypatch.setattr(markov_chains, "gmres", None)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("discount", [0.0, 0.5, 0.9, 1.0])
def test_every_answer_is_the_tabular_one(name, discount, way):
    dense = SMALL[name]()
    thin = sparse(dense)
    rng = np.random.default_rng(5)
    policy = rng.dirichlet(np.ones(dense.num_actions), size=dense.num_states)
    data_dist = rng.dirichlet(np.full(dense.reward.size, 3.0)).reshape(dense.reward.shape)
    assert (thin.num_states, thin.num_actions) == (dense.num_states, dense.num_actions)
    np.testing.assert_allclose(
        thin.occupancy(policy, discount), dense.occupancy(policy, discount), rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(
        thin.ratio(policy, discount, data_dist), dense.ratio(policy, discount, data_dist), rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(
        thin.q_values(policy, discount), dense.q_values(policy, discount), rtol=1e-10, atol=1e-10
    )
    assert thin.value(policy, discount) == pytest.approx(dense.value(policy, discount), abs=1e-10)


def test_same_seed_gives_the_tabular_log():
    dense, target, data_dist = random_problem(4)
    thin = sparse(dense)
    for draw in (
        lambda mdp: mdp.sample(500, data_dist, np.random.default_rng(0)),
        lambda mdp: mdp.rollout(target, 20, 25, np.random.default_rng(0)),
    ):
        np.testing.assert_array_equal(draw(thin).next_states, draw(dense).next_states)


def test_sampled_frequencies_are_the_transition_probabilities(rng):
    mdp = sparse(gd.mdp.machine_maintenance())
    data = mdp.sample(120_000, np.full((20, 3), 1 / 60), rng)
    counts = np.zeros((60, 20))
    np.add.at(counts, (data.states * 3 + data.actions, data.next_states), 1)
    expected = counts.sum(axis=1, keepdims=True) * np.asarray(mdp.transition.todense())
    assert (counts[expected == 0] == 0).all()
    tests = [chisquare(c[e > 0], e[e > 0]).pvalue for c, e in zip(counts, expected, strict=True) if (e > 0).sum() > 1]
    assert len(tests) == 60 and min(tests) > 1e-5 and 0.3 < np.mean(tests) < 0.7


def test_a_long_ring_is_uniform_however_slowly_it_mixes():
    mdp = walk(20_000)
    np.testing.assert_allclose(mdp.occupancy(np.ones((20_000, 1)), 1.0), 1 / 20_000, rtol=1e-6)


def test_large_chains_satisfy_their_equations(rng):
    """Random successors: no band, so this is iterated."""
    states = 5000
    columns = rng.integers(0, states, size=(2 * states, 4))
    shares = rng.dirichlet(np.ones(4), size=2 * states)
    rows = np.repeat(np.arange(2 * states), 4)
    transition = csr_array((shares.ravel(), (rows, columns.ravel())), shape=(2 * states, states))
    mdp = gd.mdp.SparseMDP(transition, rng.normal(size=(states, 2)), np.full(states, 1 / states))
    policy = rng.dirichlet(np.ones(2), size=states)
    for discount in (0.9, 0.999, 1.0):
        occupancy, q = mdp.occupancy(policy, discount), mdp.q_values(policy, discount)
        arriving = mdp.transition.T @ occupancy.ravel()
        flow = (1 - discount) * mdp.initial + discount * arriving
        assert np.abs(occupancy.sum(axis=1) - flow).sum() < 1e-12
        average = mdp.value(policy, 1.0) if discount == 1 else 0.0
        bellman = mdp.reward - average + discount * mdp.expected_next((policy * q).sum(axis=1))
        np.testing.assert_allclose(q, bellman, atol=1e-9)


def test_several_closed_classes_are_refused_at_discount_1():
    blocks = np.kron(np.eye(3), np.full((300, 300), 1 / 300))
    mdp = gd.mdp.SparseMDP(csr_array(blocks), np.zeros((900, 1)), np.full(900, 1 / 900))
    with pytest.raises(gd.InputError, match="not ergodic: it has 3 closed classes, {0, 1, 2"):
        mdp.value(np.ones((900, 1)), 1.0)
    assert mdp.occupancy(np.ones((900, 1)), 0.9).sum() == pytest.approx(1)


def test_what_does_not_converge_is_an_error(monkeypatch):
    monkeypatch.setattr(markov_chains, "MAX_FILL", 0)
    monkeypatch.setattr(markov_chains, "MAX_ROUNDS", 1)
    with pytest.raises(gd.InputError, match="mixes too slowly"):
        walk(3000).value(np.ones((3000, 1)), 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"transition": csr_array(np.full((3, 2), 0.5))}, "shape"),
        ({"transition": csr_array([[0.5, 0.5], [0.4, 0.4]])}, "row 1 sums to 0.8"),
        ({"transition": csr_array([[1.0, 0.0], [0.0, 0.0]])}, "row 1 sums to 0"),
        ({"transition": csr_array([[1.0, 0.0], [1.5, -0.5]])}, "negative probability, first in row 1"),
        ({"transition": csr_array([[np.nan, 1.0], [0.0, 1.0]])}, "not finite"),
        ({"reward": np.zeros((2, 2))}, "reward must have shape"),
        ({"initial": np.ones(3) / 3}, "initial must have shape"),
    ],
)
def test_bad_models_are_refused(change, message):
    good = {"transition": csr_array(np.full((2, 2), 0.5)), "reward": np.zeros((2, 1)), "initial": np.array([0.5, 0.5])}
    with pytest.raises(gd.InputError, match=message):
        gd.mdp.SparseMDP(**{**good, **change})


def test_the_callers_matrix_is_copied():
    mine = csr_array(np.full((2, 2), 0.5))
    mdp = gd.mdp.SparseMDP(mine, np.zeros((2, 1)), np.array([0.5, 0.5]))
    mine.data[:] = 7
    assert (mdp.transition.data == 0.5).all()
    with pytest.raises(ValueError, match="read-only"):
        mdp.transition.data[0] = 1
