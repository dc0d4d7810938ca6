"""What the policy does: shares of actions against the occupancy of known worlds."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.report.evidence import place_pictures
from gradientdice.report.page import render
from gradientdice.statistics.footprint import Footprint
from gradientdice.statistics.policy_actions import MOST_STATES, policy_actions
from problems import known

DRAWN = np.random.default_rng(7)
WORLD = gd.mdp.TabularMDP(
    DRAWN.dirichlet(np.full(6, 0.5), size=(6, 3)), DRAWN.normal(size=(6, 3)), DRAWN.dirichlet(np.ones(6))
)
UNIFORM = np.full((6, 3), 1 / 3)
# It never takes the last action, and does not do the same everywhere.
TARGET = np.column_stack([np.linspace(0.05, 0.95, 6), np.linspace(0.95, 0.05, 6), np.zeros(6)])
DISCOUNT, STEPS = 0.9, 25
# Where each state lies in space.
DIMENSIONS = 12
PLACES = 2 * np.random.default_rng(0).normal(size=(6, DIMENSIONS))


def log(episodes: int = 400, seed: int = 0, behavior: np.ndarray = UNIFORM) -> gd.Transitions:
    return WORLD.rollout(behavior, episodes, STEPS, np.random.default_rng(seed))


def in_space(data: gd.Transitions) -> gd.Transitions:
    """The same log with continuous states: each state is a cloud."""
    noise = 0.5 * np.random.default_rng(1).normal(size=(len(data) // STEPS, STEPS + 1, DIMENSIONS))
    before, after = (part.reshape(-1, DIMENSIONS) for part in (noise[:, :-1], noise[:, 1:]))
    return replace(data, states=PLACES[data.states] + before, next_states=PLACES[data.next_states] + after)


def at(states: np.ndarray) -> np.ndarray:
    """Which state each point of the space is."""
    return np.argmin(((states[:, None] - PLACES) ** 2).sum(axis=2), axis=1)


SPACE = gd.DiscretePolicy(lambda states: TARGET[at(states)], 3)


def truth(discount: float = DISCOUNT, policy: np.ndarray = TARGET) -> np.ndarray:
    return WORLD.occupancy(policy, discount).sum(axis=0)


def footprint_of(estimate: gd.Estimate) -> Footprint:
    return known(estimate.footprint)


def shares(estimate: gd.Estimate) -> dict[str, float]:
    return {move.where: move.target for move in footprint_of(estimate).actions}


def weighted(estimate: gd.Estimate, data: gd.Transitions) -> np.ndarray:
    """The shares of logged actions, weighted by the ratio."""
    mass = data.row_weights * known(estimate.ratio)
    return np.bincount(data.actions, weights=mass) / mass.sum()


@pytest.mark.parametrize("discount", [DISCOUNT, 1.0])
def test_a_tables_shares_are_the_values_of_taking_each_action(discount):
    """As estimated with a reward of 1 for the action: within its error of the truth, and equal to it."""
    data = log()
    estimate = gd.evaluate(data, gd.TabularPolicy(TARGET), discount=discount)
    found = shares(estimate)
    for action, expected in enumerate(truth(discount)):
        counted = replace(data, rewards=(data.actions == action).astype(float))
        share = gd.evaluate(counted, gd.TabularPolicy(TARGET), discount=discount)
        assert found[f"action {action}"] == pytest.approx(share.value, abs=1e-9)
        assert abs(found[f"action {action}"] - expected) <= 3 * known(share.standard_error)
    assert found["action 2"] == 0.0 and known(footprint_of(estimate).action_distance) < 1e-9
    assert footprint_of(estimate).unlogged == 0.0


def test_an_ended_episode_takes_no_more_actions():
    """Only the first action is taken in state 0, and the second in state 1, in which every episode ends."""
    data = gd.Transitions(
        [0, 1] * 50,
        [0, 1] * 50,
        np.zeros(100),
        [1, 0] * 50,
        terminated=[False, True] * 50,
        episodes=np.arange(100) // 2,
    )
    found = shares(gd.evaluate(data, gd.TabularPolicy(np.eye(2)), discount=0.5))
    # Steps 0 and 1 count for 0.5 and 0.25.
    assert found == {"action 0": pytest.approx(2 / 3), "action 1": pytest.approx(1 / 3)}


def test_an_action_that_the_log_never_has_is_shown():
    behavior = np.tile([0.5, 0.5, 0.0], (6, 1))
    target = np.tile([0.7, 0.0, 0.3], (6, 1))
    estimate = gd.evaluate(log(behavior=behavior), gd.TabularPolicy(target), discount=DISCOUNT)
    moves = {move.where: (move.logged, move.target) for move in footprint_of(estimate).actions}
    assert moves["action 2"] == (0.0, pytest.approx(0.3)) and moves["action 0"][1] == pytest.approx(0.7)
    assert footprint_of(estimate).unlogged == pytest.approx(0.3)
    caption = place_pictures(estimate)[-1].caption
    assert "30% of the policy's steps were never logged" in caption and "uncertain by about that much" in caption


def test_actions_beyond_the_logs_words_have_numbers():
    data = replace(log(behavior=np.tile([0.5, 0.5, 0.0], (6, 1))), action_names=("left", "right"))
    estimate = gd.evaluate(data, gd.TabularPolicy(np.tile([0.7, 0.0, 0.3], (6, 1))), discount=DISCOUNT)
    assert [move.where for move in footprint_of(estimate).actions] == ["left", "right", "action 2"]


def every(estimate: gd.Estimate) -> np.ndarray:
    return np.array([shares(estimate).get(f"action {action}", 0.0) for action in range(3)])


def test_the_default_on_continuous_states():
    """On this log its ratio is off: logged actions weighted by it are not what the policy does."""
    data = in_space(log(20))
    estimate = gd.evaluate(data, SPACE, discount=DISCOUNT, effort="quick")
    np.testing.assert_allclose(every(estimate), truth(), atol=0.03)
    assert every(estimate)[2] == 0.0
    assert np.abs(weighted(estimate, data) - truth()).max() > 0.03


@pytest.mark.parametrize("seed", range(3))
def test_a_regularised_ratio_does_not_show_actions_that_are_never_taken(seed):
    data = in_space(log(80, seed))
    functions = gd.RandomFourier(300, bandwidth=3.0)
    estimate = gd.evaluate(data, SPACE, gd.GradientDICE(DISCOUNT, ridge=0.3), functions=functions)
    np.testing.assert_allclose(every(estimate), truth(), atol=0.05)
    assert every(estimate)[2] == 0.0
    old = weighted(estimate, data)
    assert old[2] > 0.1 and np.abs(old - truth()).max() > 2 * np.abs(every(estimate) - truth()).max()
    # Each row's own probabilities against what was logged there.
    mass = np.maximum(data.row_weights * known(estimate.ratio), 0.0)
    mass /= mass.sum()
    apart = mass @ TARGET[at(data.states)] - np.bincount(data.actions, weights=mass)
    distance = known(footprint_of(estimate).action_distance)
    assert distance == pytest.approx(0.5 * np.abs(apart).sum()) and distance > 0.1
    caption = place_pictures(estimate)[-1].caption
    assert "only roughly known, so that the states the policy visits, and with them these shares" in caption
    assert f"uncertain by about {distance:.0%} of the steps." in caption and caption in render(estimate)


@pytest.mark.parametrize("discount", [DISCOUNT, 1.0])
def test_a_logged_policy_has_the_shares_of_the_policy_itself(discount):
    table = log()
    for data, probabilities in ((table, lambda states: TARGET[states]), (in_space(log(40)), SPACE.probabilities_at)):
        policy = gd.LoggedPolicy(probabilities(data.next_states), probabilities(known(data.start_states)))
        found = gd.evaluate(data, policy, discount=discount, effort="quick")
        np.testing.assert_allclose(every(found), truth(discount), atol=0.03)
        assert every(found)[2] == 0.0
        other = gd.DiscretePolicy(probabilities, 3) if data is not table else gd.TabularPolicy(TARGET)
        same = gd.evaluate(data, other, discount=discount, effort="quick")
        np.testing.assert_allclose(every(found), every(same), atol=1e-9)


def test_a_logged_policy_that_is_no_function_of_the_state():
    """In a table: it does in next states what its rows say, half of them this and half that."""
    data = log()
    rows = np.eye(3)[np.arange(len(data)) % 2]
    starts = np.tile([0.0, 1.0, 0.0], (len(known(data.start_states)), 1))
    estimate = gd.evaluate(data, gd.LoggedPolicy(rows, starts), discount=DISCOUNT)
    mass = data.row_weights * known(estimate.ratio)
    expected = 0.1 * starts[0] + 0.9 * (mass @ rows) / mass.sum()
    np.testing.assert_allclose(every(estimate), expected, atol=1e-9)


def test_a_continuous_policy_acts_by_itself():
    """x' = x/2 + a + noise with a = 1/2 − 3x/10 + noise: the mean of x is m' = x/5 + 1/2, discounted from 0."""
    rng = np.random.default_rng(0)
    states = np.zeros((200, STEPS + 1, 1))
    actions = rng.normal(size=(200, STEPS, 1))
    for step in range(STEPS):
        states[:, step + 1] = 0.5 * states[:, step] + actions[:, step] + 0.3 * rng.normal(size=(200, 1))
    data = gd.Transitions(
        states[:, :-1].reshape(-1, 1),
        actions.reshape(-1, 1),
        states[:, :-1].ravel(),
        states[:, 1:].reshape(-1, 1),
        episodes=np.repeat(np.arange(200), STEPS),
    )
    policy = gd.SamplingPolicy(lambda states, rng: 0.5 - 0.3 * states + 0.5 * rng.normal(size=states.shape))
    # With m_0 = 0 the mean of step t is 5/8 (1 − 0.2ᵗ).
    mean = 0.1 * sum(DISCOUNT**step * 0.625 * (1 - 0.2**step) for step in range(500))
    found = [gd.evaluate(data, policy, discount=DISCOUNT, effort="quick", seed=seed) for seed in (0, 0, 1)]
    moves = [footprint_of(estimate).actions[0] for estimate in found]
    assert moves[0].where == "action[0], mean" and moves[0].logged == pytest.approx(actions.mean())
    assert [move.target for move in moves] == pytest.approx([0.5 - 0.3 * mean] * 3, abs=0.03)
    assert moves[0] == moves[1] != moves[2]
    assert not footprint_of(found[0]).action_shares and footprint_of(found[0]).action_distance is None
    drawn = policy.sample(np.repeat(data.next_states, 3, axis=0), np.random.default_rng(1)).reshape(-1, 3, 1)
    starts = policy.sample(np.zeros((200, 1)), np.random.default_rng(2))
    arrays = gd.LoggedPolicy(next_actions=drawn, initial_actions=starts)
    logged = footprint_of(gd.evaluate(data, arrays, discount=DISCOUNT, effort="quick"))
    assert logged.actions[0].target == pytest.approx(0.5 - 0.3 * mean, abs=0.03)


def test_a_long_log_asks_the_policy_at_few_states():
    """Every second row is the other state, and rows of one state lie at constant distances."""
    n, asked = 60_000, []

    def probabilities(states: np.ndarray) -> np.ndarray:
        asked.append(len(states))
        return np.column_stack([states[:, 0], 1 - states[:, 0]])

    states = np.tile([[1.0], [0.0]], (n // 2, 1))
    data = gd.Transitions(states, np.arange(n) % 3 % 2, np.zeros(n), 1 - states, initial_states=np.ones((n, 1)))
    problem = gd.Problem(data, gd.DiscretePolicy(probabilities, 2), gd.RandomFourier(10))
    asked.clear()
    mass = np.tile([3.0, 1.0, 3.0, 1.0, -1.0, 0.0], n // 6)
    found = known(policy_actions(problem, mass, 0.5))
    assert 0 < max(asked) <= MOST_STATES and sum(asked) <= 2 * MOST_STATES
    # Of the mass 3 in 4 lie in state 1, which lead to state 0; half of the steps are first ones, in state 1.
    np.testing.assert_allclose(known(found.shares), [0.5 + 0.5 / 4, 0.5 * 3 / 4], atol=0.01)
    again = known(policy_actions(problem, mass, 0.5))
    assert np.array_equal(known(found.shares), known(again.shares)) and found.distance == again.distance


def test_without_mass_nothing_is_said_of_the_policy():
    data = in_space(log(2))
    problem = gd.Problem(data, SPACE, gd.RandomFourier(10))
    assert policy_actions(problem, -np.ones(len(data)), DISCOUNT) is None
    assert policy_actions(problem, np.full(len(data), np.nan), DISCOUNT) is None
