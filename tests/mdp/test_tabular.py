"""The oracle, against rational arithmetic and against its own defining equations."""

from fractions import Fraction

import numpy as np
import pytest

import gradientdice as gd
from problems import TARGET, UNIFORM, known, random_problem


def solve_rationals(matrix, target):
    """Gauss-Jordan elimination in exact arithmetic."""
    size = len(matrix)
    rows = [list(row) + [value] for row, value in zip(matrix, target, strict=True)]
    for column in range(size):
        pivot = next(r for r in range(column, size) if rows[r][column] != 0)
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for r in range(size):
            if r != column and rows[r][column] != 0:
                rows[r] = [a - rows[r][column] * b for a, b in zip(rows[r], rows[column], strict=True)]
    return [row[-1] for row in rows]


def boyan_occupancy_exactly(gamma: Fraction, continuing: bool) -> np.ndarray:
    """d(s) from the chain's definition alone, in rationals, then times the policy."""
    size, policy = 13, (Fraction(1, 10), Fraction(9, 10))
    chain = [[Fraction(0)] * size for _ in range(size)]
    for state in range(2, size):
        chain[state][state - 1] += policy[0]
        chain[state][state - 2] += policy[1]
    chain[1][0] = Fraction(1)
    chain[0] = [Fraction(1, size)] * size if continuing else [Fraction(1)] + [Fraction(0)] * (size - 1)
    system = [[(s == t) - gamma * chain[t][s] for t in range(size)] for s in range(size)]
    right = [(1 - gamma) * Fraction(1, size)] * size
    if gamma == 1:
        system[-1], right[-1] = [Fraction(1)] * size, Fraction(1)
    states = solve_rationals(system, right)
    return np.array([[float(d * p) for p in policy] for d in states])


@pytest.mark.parametrize("gamma", [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10), Fraction(999, 1000), Fraction(1)])
def test_boyan_occupancy_equals_rational_arithmetic(gamma):
    mdp = gd.mdp.boyan_chain("continuing" if gamma == 1 else "episodic")
    expected = boyan_occupancy_exactly(Fraction(gamma), gamma == 1)
    np.testing.assert_allclose(mdp.occupancy(TARGET, float(gamma)), expected, rtol=1e-12)
    np.testing.assert_allclose(mdp.ratio(TARGET, float(gamma), UNIFORM), expected * 26, rtol=1e-12)


@pytest.mark.parametrize("discount", [0.0, 0.3, 0.9, 0.999])
def test_discounted_occupancy_and_q_satisfy_their_equations(problem, discount):
    mdp, target, _ = problem
    occupancy = mdp.occupancy(target, discount).ravel()
    mu0 = (mdp.initial[:, None] * target).ravel()
    chain = mdp.pair_chain(target)
    np.testing.assert_allclose(occupancy, (1 - discount) * mu0 + discount * chain.T @ occupancy, atol=1e-14)
    q = mdp.q_values(target, discount).ravel()
    np.testing.assert_allclose(q, mdp.reward.ravel() + discount * chain @ q, atol=1e-10)
    assert mdp.value(target, discount) == pytest.approx((1 - discount) * mu0 @ q, abs=1e-11)


def test_average_reward_is_the_limit_of_powers_and_q_is_differential(problem):
    mdp, target, _ = problem
    chain = mdp.pair_chain(target)
    limit = np.linalg.matrix_power(chain, 4096)[0]
    np.testing.assert_allclose(mdp.occupancy(target, 1.0).ravel(), limit, atol=1e-12)
    q, value = mdp.q_values(target, 1.0).ravel(), mdp.value(target, 1.0)
    np.testing.assert_allclose(q, mdp.reward.ravel() - value + chain @ q, atol=1e-12)
    assert limit @ q == pytest.approx(0, abs=1e-12)


def test_slowly_mixing_chain_keeps_relative_precision():
    """Two states that swap with probability 1e-12 and 3e-12: d = (3/4, 1/4), which an eigensolver would blur."""
    leak = 1e-12
    transition = np.array([[[1 - leak, leak]], [[3 * leak, 1 - 3 * leak]]])
    mdp = gd.mdp.TabularMDP(transition, np.zeros((2, 1)), np.array([1.0, 0.0]))
    np.testing.assert_allclose(mdp.occupancy(np.ones((2, 1)), 1.0).ravel(), [0.75, 0.25], rtol=1e-12)


def test_two_closed_classes_are_refused_by_name():
    transition = np.zeros((4, 1, 4))
    transition[0, 0, 0] = transition[1, 0, 2] = transition[2, 0, 1] = 1
    transition[3, 0, [0, 1]] = 0.5
    mdp = gd.mdp.TabularMDP(transition, np.zeros((4, 1)), np.full(4, 0.25))
    with pytest.raises(gd.InputError, match=r"2 closed classes, \{0\}; \{1, 2\}"):
        mdp.occupancy(np.ones((4, 1)), 1.0)
    assert mdp.occupancy(np.ones((4, 1)), 0.9).sum() == pytest.approx(1)


def test_transient_states_get_no_mass():
    mdp = gd.mdp.boyan_chain("episodic")
    occupancy = mdp.occupancy(TARGET, 1.0)
    assert occupancy[0].sum() == pytest.approx(1) and (occupancy[1:] == 0).all()


def test_ratio_needs_data_where_the_policy_goes():
    mdp = gd.mdp.single_state()
    with pytest.raises(gd.InputError, match="state 0 with action 1"):
        mdp.ratio(np.array([[0.5, 0.5]]), 0.9, np.array([[1.0, 0.0]]))
    np.testing.assert_allclose(mdp.ratio(np.array([[1.0, 0.0]]), 0.9, np.array([[1.0, 0.0]])), [[1, 0]])


def test_sample_has_the_right_frequencies(rng):
    mdp, target, data_dist = random_problem(7)
    n = 200_000
    data = mdp.sample(n, data_dist, rng)
    pairs = np.bincount(data.states * 2 + data.actions, minlength=10) / n
    np.testing.assert_allclose(pairs, data_dist.ravel(), atol=5 * np.sqrt(0.25 / n))
    chosen = (data.states == 2) & (data.actions == 1)
    successors = np.bincount(data.next_states[chosen], minlength=5) / chosen.sum()
    np.testing.assert_allclose(successors, mdp.transition[2, 1], atol=5 * np.sqrt(0.25 / chosen.sum()))
    starts = np.bincount(known(data.initial_states), minlength=5) / n
    np.testing.assert_allclose(starts, mdp.initial, atol=5 * np.sqrt(0.25 / n))
    assert (data.rewards == mdp.reward[data.states, data.actions]).all()


def test_rollout_is_made_of_trajectories(rng):
    mdp, target, _ = random_problem(3)
    data = mdp.rollout(target, episodes=200, horizon=30, rng=rng)
    states, following = data.states.reshape(200, 30), data.next_states.reshape(200, 30)
    assert (states[:, 1:] == following[:, :-1]).all()
    assert known(data.truncated).reshape(200, 30)[:, -1].all() and known(data.truncated).sum() == 200
    np.testing.assert_allclose(np.exp(known(data.behavior_log_probs)), target[data.states, data.actions])
    assert (data.start_states == states[:, 0]).all()


def test_zero_probability_transitions_are_never_drawn(rng):
    data = gd.mdp.boyan_chain("episodic").sample(50_000, UNIFORM, rng)
    later = data.states >= 2
    assert (data.next_states[later] == data.states[later] - 1 - data.actions[later]).all()
    assert (data.next_states[~later] == 0).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"transition": np.ones((2, 2))}, "shape"),
        ({"transition": np.full((2, 1, 2), 0.4)}, "row 0 sums to 0.8"),
        ({"reward": np.array([[np.nan], [0.0]])}, "not finite, first in row 0"),
        ({"initial": np.array([1.5, -0.5])}, "negative probability"),
        ({"initial": np.ones(3) / 3}, "shape"),
    ],
)
def test_bad_models_are_refused(change, message):
    good = {"transition": np.full((2, 1, 2), 0.5), "reward": np.zeros((2, 1)), "initial": np.array([0.5, 0.5])}
    with pytest.raises(gd.InputError, match=message):
        gd.mdp.TabularMDP(**{**good, **change})


def test_policies_may_be_tables_or_arrays():
    mdp = gd.mdp.boyan_chain("episodic")
    assert mdp.value(gd.TabularPolicy(TARGET), 0.9) == mdp.value(TARGET, 0.9)
    with pytest.raises(gd.InputError, match="policy must have shape"):
        mdp.value(TARGET[:5], 0.9)
    with pytest.raises(gd.InputError, match="discount must lie in"):
        mdp.value(TARGET, 1.1)


def test_boyan_features_are_the_papers():
    features = gd.mdp.boyan_features()
    np.testing.assert_array_equal(
        features[[12, 11, 9, 0]], [[1, 0, 0, 0], [0.75, 0.25, 0, 0], [0.25, 0.75, 0, 0], [0, 0, 0, 1]]
    )
    np.testing.assert_allclose(features.sum(axis=1), 1)
    pairs = gd.mdp.pair_features(features, 2)
    assert pairs.shape == (26, 8)
    np.testing.assert_array_equal(pairs[2 * 11], [0.75, 0.25, 0, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(pairs[2 * 11 + 1], [0, 0, 0, 0, 0.75, 0.25, 0, 0])
