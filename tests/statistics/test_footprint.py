"""Footprints: shares against sums written out, on logs where the answer is known."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.statistics.footprint import BINS, footprint
from gradientdice.statistics.influence import Influence
from problems import known


@pytest.fixture
def log():
    """Three episodes of 2, 3 and 1 rows, not in the order of their numbers."""
    return gd.Transitions(
        states=[0, 1, 0, 1, 0, 1],
        actions=[0, 1, 1, 0, 2, 2],
        rewards=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        next_states=[1, 0, 1, 0, 1, 0],
        episodes=[7, 7, 3, 3, 3, 9],
        weights=[1.0, 1.0, 2.0, 1.0, 1.0, 2.0],
    )


RATIO = np.array([0.5, 1.5, 1.0, 0.0, 2.0, 1.0])
# In state 0 it takes the actions 0 and 2, in state 1 the actions 0 and 1.
POLICY = gd.TabularPolicy([[0.2, 0.0, 0.8], [0.5, 0.5, 0.0]])


def asked(data, policy=POLICY):
    """A problem, of which a footprint needs the log, the policy and the seed."""
    return gd.Problem(data, policy)


def same_everywhere(data, probabilities=(1.0,)):
    """A problem with a policy that takes no notice of the state."""
    own = np.array(probabilities)
    return gd.Problem(data, gd.DiscretePolicy(lambda states: np.tile(own, (len(states), 1)), len(own)))


def influence(rows):
    rows = np.array(rows)
    return Influence(rows, None, RATIO, np.array([0.1, 0.2, -0.1, 0.0, 0.3, 0.2]))


def test_shares_by_step_and_along_the_log(log):
    found = footprint(asked(log), RATIO, influence([0.0, 0.3, 0.0, 0.0, -0.4, 0.0]), 0.9)
    assert found.by_step is not None
    # Steps 0, 1, 0, 1, 2, 0; mass 0.5, 1.5, 2, 0, 2, 2 of 8.
    np.testing.assert_array_equal(found.by_step.edges, [0, 1, 2, 3])
    np.testing.assert_allclose(found.by_step.logged, [5 / 8, 2 / 8, 1 / 8])
    np.testing.assert_allclose(found.by_step.target, [4.5 / 8, 1.5 / 8, 2 / 8])
    np.testing.assert_allclose(known(found.by_step.error), [0, 0.09 / 0.25, 0.16 / 0.25])
    np.testing.assert_allclose(found.along_log.target, np.array([0.5, 1.5, 2, 0, 2, 2]) / 8)


def test_actions_and_the_heaviest_rows(log):
    found = footprint(asked(log), RATIO, influence([0.0, 0.3, 0.0, 0.0, -0.4, 0.0]), 0.9)
    assert [(move.where, move.logged, move.target) for move in found.actions] == [
        # The policy has a mass of 0.5 + 2 + 2 in state 0 and of 1.5 + 0 + 2 in state 1.
        ("action 0", 2 / 8, pytest.approx((0.2 * 4.5 + 0.5 * 3.5) / 8)),
        ("action 1", 3 / 8, pytest.approx(0.5 * 3.5 / 8)),
        ("action 2", 3 / 8, pytest.approx(0.8 * 4.5 / 8)),
    ]
    # Logged actions weighted by the ratio have 0.5, 3.5 and 4 of 8.
    expected = 0.5 * (abs(2.65 - 0.5) + abs(1.75 - 3.5) + abs(3.6 - 4)) / 8
    assert found.action_distance == pytest.approx(expected)
    first, second = found.heaviest[:2]
    assert (first.row, first.episode, first.step, first.action, first.reward) == (4, 3, 2, "action 2", 5.0)
    assert first.state == f"state {log.states[4]}"
    assert first.share == pytest.approx(0.64) and second.share == pytest.approx(0.36) and first.ratio == 2.0


def test_the_log_s_words_are_used(log):
    object.__setattr__(log, "action_names", ("stay", "go", "wait"))
    found = footprint(asked(log), RATIO, None, 0.9)
    assert [move.where for move in found.actions] == ["stay", "go", "wait"]
    assert found.heaviest == () and found.along_log.error is None and found.correction is None


def test_rows_are_told_by_the_names_of_their_columns(rng):
    states = rng.normal(size=(6, 4))
    data = gd.Transitions(
        states, states[:, :1], np.zeros(6), states, state_columns=("x", "y", "z", "w"), action_columns=("force",)
    )
    problem = gd.Problem(data, gd.SamplingPolicy(lambda states, rng: np.zeros((len(states), 1))))
    first = footprint(problem, RATIO, influence([0.0, 1.0, 0.0, 0.0, 0.0, 0.0]), 1.0).heaviest[0]
    numbers = [f"{number:.3g}" for number in states[1]]
    assert first.state == f"x {numbers[0]}, y {numbers[1]}, z {numbers[2]}, …" and first.action == f"force {numbers[0]}"


def test_the_correction_is_the_weighted_residual(log):
    found = footprint(asked(log), RATIO, influence(np.arange(6.0)), 0.9)
    assert found.correction == pytest.approx((0.05 + 0.3 - 0.2 + 0.0 + 0.6 + 0.4) / 8)
    assert footprint(asked(log), RATIO, influence(np.arange(6.0)), 1.0).correction is None


def test_long_logs_have_few_bins_of_equal_width():
    n = 1000
    log = gd.Transitions(np.zeros(n, int), np.zeros(n, int), np.zeros(n), np.zeros(n, int))
    found = footprint(same_everywhere(log), np.ones(n), None, 1.0)
    assert found.by_step is None and len(found.along_log.logged) == BINS
    np.testing.assert_allclose(found.along_log.logged, 1 / BINS)
    assert found.along_log.edges[-1] == n


def test_a_bandit_has_no_steps():
    log = gd.Transitions([0, 1, 1], [0, 1, 0], [1.0, 2.0, 3.0], None)
    problem = same_everywhere(log, (0.5, 0.5))
    found = footprint(problem, np.ones(3), Influence(np.array([1.0, -1.0, 0.0]), None, np.ones(3), np.zeros(3)), 0.0)
    assert found.by_step is None and found.heaviest[0].episode is None and found.states is None


def test_vector_actions_are_shown_by_their_means():
    """In the states with mass the policy's own, whatever was logged there."""
    states = np.array([[1.0], [2.0], [3.0], [4.0]])
    log = gd.Transitions(states, states, np.zeros(4), states)
    problem = gd.Problem(log, gd.SamplingPolicy(lambda states, rng: 10 * states))
    found = footprint(problem, np.array([0.0, -1.0, 1.0, 3.0]), None, 1.0)
    assert not found.action_shares and found.action_distance is None
    assert (found.actions[0].logged, found.actions[0].target) == (2.5, pytest.approx(37.5))


def test_the_value_is_what_q_says_and_the_correction():
    """Doubly robust: (1−γ) E[V] of the initial states and the correction, here put together from a Q of 0."""
    from gradientdice.estimators.doubly_robust.combine import combine
    from gradientdice.statistics.influence import HeldOut

    log = gd.Transitions([[0.0], [1.0]], [0, 1], [1.0, 3.0], [[1.0], [0.0]], initial_states=[[0.0], [1.0]])
    scores = HeldOut(np.array([0.5, 1.5]), log.rewards, np.zeros(2), np.array([2.0, 4.0]))
    value, shares = combine(0.9, log, scores, 1.0)
    correction = footprint(same_everywhere(log, (0.5, 0.5)), scores.ratio, shares, 0.9).correction
    assert known(correction) == pytest.approx(2.5) and value - known(correction) == pytest.approx(0.1 * 3.0)
