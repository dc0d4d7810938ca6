"""The benchmark MDPs: what defines each, values found by hand or in print, and Monte Carlo against the exact values."""

import numpy as np
import pytest
from scipy.sparse import issparse

import gradientdice as gd
from gradientdice.mdp.benchmarks.grids import FOUR_ROOMS, FOUR_ROOMS_GOAL
from problems import known

REWARD = np.arange(14.0).reshape(7, 2)


# name -> (MDP, its policies, whether the last state is the end)
FAMILIES = {
    "grid walk": (gd.mdp.grid_walk, gd.mdp.grid_walk_policies, False),
    "four rooms": (gd.mdp.four_rooms, gd.mdp.four_rooms_policies, False),
    "frozen lake 4": (lambda: gd.mdp.frozen_lake(4), gd.mdp.frozen_lake_policies, True),
    "frozen lake 8": (gd.mdp.frozen_lake, gd.mdp.frozen_lake_policies, True),
    "taxi": (gd.mdp.taxi_world, gd.mdp.taxi_policies, False),
    "ModelWin": (gd.mdp.model_win_mdp, gd.mdp.model_win_policies, False),
    "ModelWin, 20 steps": (lambda: gd.mdp.model_win_mdp(20), gd.mdp.model_win_policies, True),
    "ModelFail": (gd.mdp.model_fail_mdp, gd.mdp.model_fail_policies, True),
    "Baird": (lambda: gd.mdp.baird_star(REWARD), gd.mdp.baird_policies, False),
    "mountain car": (gd.mdp.mountain_car, gd.mdp.mountain_car_policies, False),
    "PageRank": (gd.mdp.offline_page_rank, gd.mdp.page_rank_policies, False),
}


SIZES = {
    "grid walk": (100, 4),
    "four rooms": (104, 4),
    "frozen lake 4": (12, 4),
    "frozen lake 8": (54, 4),
    "taxi": (2000, 6),
    "ModelWin": (3, 2),
    "ModelWin, 20 steps": (61, 2),
    "ModelFail": (4, 2),
    "Baird": (7, 2),
    "mountain car": (170, 3),
    "PageRank": (1001, 2),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_sizes_rows_and_policies(name):
    make, policies, ends = FAMILIES[name]
    mdp = make()
    target, behavior = policies(mdp)
    assert (mdp.num_states, mdp.num_actions) == SIZES[name]
    np.testing.assert_allclose(mdp.transition.sum(axis=-1), 1, rtol=1e-12)
    for policy in (target, behavior):
        assert policy.shape == mdp.reward.shape
        np.testing.assert_allclose(policy.sum(axis=1), 1, rtol=1e-12)
    # The log covers the target and the two differ in value.
    assert (behavior[target > 0] > 0).all()
    assert abs(mdp.value(target, 0.9) - mdp.value(behavior, 0.9)) > 1e-5
    last = mdp.num_states - 1
    if ends:
        assert not issparse(mdp.transition)
        assert (mdp.transition[last, :, last] == 1).all() and (mdp.reward[last] == 0).all()
    else:
        assert mdp.occupancy(behavior, 1.0).sum() == pytest.approx(1)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("which", [0, 1])
def test_monte_carlo_agrees_with_the_exact_value(name, which, rng):
    make, policies, ends = FAMILIES[name]
    mdp = make()
    policy, discount, episodes, horizon = policies(mdp)[which], 0.9, 1500, 150
    data = mdp.rollout(policy, episodes, horizon, rng, terminal=mdp.num_states - 1 if ends else None)
    step = np.arange(len(data)) - np.searchsorted(data.episodes, data.episodes)
    returns = (1 - discount) * np.bincount(data.episodes, weights=discount**step * data.rewards)
    error = returns.std() / np.sqrt(episodes)
    # What the horizon cuts off, 0.9^150 of the largest reward, is below rounding of the standard error.
    assert abs(returns.mean() - mdp.value(policy, discount)) < 4 * error + 2e-6 * np.abs(mdp.reward).max()


def test_grid_walk_by_hand():
    """2 × 2, no slip, always right: the walk stays in its row, one step from the corner or at it."""
    mdp = gd.mdp.grid_walk(side=2, slip=0.0)
    right = np.tile([0, 1.0, 0, 0], (4, 1))
    assert mdp.value(right, 0.7) == pytest.approx((np.exp(-1) + 1) / 2)
    slipping = gd.mdp.grid_walk(side=3, slip=0.2)
    # From the middle, up: 0.8 + 0.05, and 0.05 for each other direction.
    np.testing.assert_allclose(slipping.transition[4, 0, [1, 5, 7, 3]], [0.85, 0.05, 0.05, 0.05])


def test_four_rooms_has_four_hallways_and_slips_a_third():
    mdp, free = gd.mdp.four_rooms(), [(r, c) for r in range(11) for c in range(11) if FOUR_ROOMS[r][c] == "."]
    goal = free.index(FOUR_ROOMS_GOAL)
    neighbours = [sum((r + d, c + e) in free for d, e in ((0, 1), (1, 0), (0, -1), (-1, 0))) for r, c in free]
    assert neighbours.count(2) == 4 + 4 * 4 and neighbours.count(1) == 0
    middle = free.index((2, 2))
    to = [free.index(cell) for cell in ((1, 2), (2, 3), (3, 2), (2, 1))]
    np.testing.assert_allclose(mdp.transition[middle, 0, to], [2 / 3, 1 / 9, 1 / 9, 1 / 9])
    # In the first corner up and left both stay.
    assert mdp.transition[0, 0, 0] == pytest.approx(2 / 3 + 1 / 9)
    # Each arrival pays 1 and stays one step: the average reward is the time spent at the goal.
    target, _ = gd.mdp.four_rooms_policies(mdp)
    assert mdp.value(target, 1.0) == pytest.approx(mdp.occupancy(target, 1.0)[goal].sum())
    np.testing.assert_allclose(np.delete(mdp.transition[goal], goal, axis=1), 1 / 103)


@pytest.mark.parametrize(("size", "chance"), [(4, 14 / 17), (8, 1.0)])
def test_frozen_lake_is_crossed_as_often_as_is_known(size, chance):
    """The best policy's undiscounted chance: 14/17 on the small map; the large one can be crossed for certain."""
    mdp, near_one = gd.mdp.frozen_lake(size), 1 - 1e-9
    q = gd.mdp.optimal_q(mdp, 0.9999, tolerance=1e-7)
    best = np.eye(4)[q.argmax(axis=1)]
    assert mdp.value(best, near_one) / (1 - near_one) == pytest.approx(chance, abs=1e-5)


@pytest.mark.parametrize("size", [4, 8])
def test_frozen_lake_is_gymnasiums(size):
    """Each pair's reward and chance of going on, against Gymnasium's own table; its actions are left, down, right, up."""
    toy_text = pytest.importorskip("gymnasium.envs.toy_text.frozen_lake")
    table = toy_text.FrozenLakeEnv(map_name=f"{size}x{size}", is_slippery=True).P
    mdp, ice = gd.mdp.frozen_lake(size), [s for s in table if table[s][0] != [(1.0, s, 0, True)]]
    assert len(ice) == mdp.num_states - 1
    for state, square in enumerate(ice):
        for action, theirs in enumerate((3, 2, 1, 0)):
            expected = np.zeros(mdp.num_states)
            for chance, to, _, ended in table[square][theirs]:
                expected[-1 if ended else ice.index(to)] += chance
            np.testing.assert_allclose(mdp.transition[state, action], expected, atol=1e-12)
            paid = sum(chance * reward for chance, _, reward, _ in table[square][theirs])
            assert mdp.reward[state, action] == pytest.approx(paid)


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.99, 1.0])
def test_model_win_by_hand(discount):
    """Each visit to state 0 earns the target 0.2 (2 / (1 + e⁻¹) − 1) = 0.2 tanh(1/2), at every other step."""
    mdp = gd.mdp.model_win_mdp()
    target, behavior = gd.mdp.model_win_policies(mdp)
    expected = 0.2 * np.tanh(0.5) / (1 + discount)
    assert mdp.value(target, discount) == pytest.approx(expected, rel=1e-12)
    assert mdp.value(behavior, discount) == pytest.approx(-expected, rel=1e-12)
    timed = gd.mdp.model_win_mdp(20)
    if discount < 1:
        visits = (1 - discount**20) / (1 - discount**2)
        assert timed.value(gd.mdp.model_win_policies(timed)[0], discount) == pytest.approx(
            (1 - discount) * 0.2 * np.tanh(0.5) * visits, rel=1e-12
        )


def test_model_win_episodes_last_as_long_as_the_clock(rng):
    timed = gd.mdp.model_win_mdp(20)
    data = timed.rollout(gd.mdp.model_win_policies(timed)[0], 30, 50, rng, terminal=60)
    assert len(data) == 600 and known(data.terminated).sum() == 30 and not known(data.truncated).any()
    assert (data.states // 3 == np.tile(np.arange(20), 30)).all()


@pytest.mark.parametrize("discount", [0.0, 0.5, 0.99])
def test_model_fail_by_hand(discount):
    mdp = gd.mdp.model_fail_mdp()
    target, behavior = gd.mdp.model_fail_policies(mdp)
    assert behavior[0, 0] == pytest.approx(0.8808, abs=1e-4)
    assert mdp.value(target, discount) == pytest.approx(-(1 - discount) * discount * np.tanh(1), rel=1e-12)
    assert (gd.mdp.model_fail_observations([0, 1, 2]) == 0).all()


def test_baird_by_hand():
    """Under the target the last state holds all but the first step; the behaviour visits all states alike."""
    mdp = gd.mdp.baird_star(REWARD)
    target, behavior = gd.mdp.baird_policies(mdp)
    np.testing.assert_allclose(mdp.occupancy(target, 0.9)[:, 1], [*[0.1 / 7] * 6, 0.1 / 7 + 0.9], rtol=1e-12)
    assert mdp.value(target, 1.0) == pytest.approx(13)
    for discount in (0.9, 1.0):
        np.testing.assert_allclose(mdp.occupancy(behavior, discount).sum(axis=1), 1 / 7, rtol=1e-12)
    assert gd.mdp.baird_star().value(behavior, 0.99) == 0
    features = gd.mdp.baird_features()
    assert features.shape == (7, 8) and np.linalg.matrix_rank(features) == 7
    # At Sutton and Barto's first weights the last state is worth 12, the others 3.
    np.testing.assert_array_equal(features @ [1, 1, 1, 1, 1, 1, 10, 1], [3, 3, 3, 3, 3, 3, 12])


def test_mountain_car_row_by_hand():
    """One point a bin and one step: each row is where the centre of its bin goes."""
    mdp = gd.mdp.mountain_car(positions=17, velocities=10, repeats=1, points=1)
    place, speed = -1.2 + 0.1 * 12.5, 0.14 * (9.5 / 10) - 0.07
    faster = min(speed + 0.001 - 0.0025 * np.cos(3 * place), 0.07)
    expected = int((place + faster + 1.2) / 0.1) * 10 + int((faster + 0.07) / 0.014)
    assert mdp.transition[12 * 10 + 9, 2, expected] == 1
    # The wall on the left stops the car: in the first column, at the bin just above rest.
    assert mdp.transition[0, 0, 5] == 1
    # In the last column at full speed the goal is reached and the car starts anew.
    assert mdp.reward[169, 2] == 1
    np.testing.assert_allclose(mdp.transition[169, 2], mdp.initial)


def test_mountain_car_needs_momentum():
    mdp = gd.mdp.mountain_car()
    target, behavior = gd.mdp.mountain_car_policies(mdp)
    forward = np.tile([0, 0, 1.0], (170, 1))
    values = [mdp.value(policy, 1.0) for policy in (target, behavior, forward)]
    assert values[0] > values[1] > values[2]


def test_value_iteration_solves_the_optimality_equation():
    mdp = gd.mdp.machine_maintenance()
    q = gd.mdp.optimal_q(mdp, 0.9)
    np.testing.assert_allclose(q, mdp.reward + 0.9 * mdp.transition @ q.max(axis=1), atol=1e-6)
    np.testing.assert_allclose(mdp.q_values(np.eye(3)[q.argmax(axis=1)], 0.9), q, atol=1e-5)
    with pytest.raises(gd.InputError, match="below 1"):
        gd.mdp.optimal_q(mdp, 1.0)


def test_a_mistaken_size_is_refused():
    with pytest.raises(gd.InputError, match="4 or 8"):
        gd.mdp.frozen_lake(5)  # type: ignore[arg-type]
    with pytest.raises(gd.InputError, match="pages must be more than links"):
        gd.mdp.offline_page_rank(pages=3, links=3)
