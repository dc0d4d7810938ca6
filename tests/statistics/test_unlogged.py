"""What an interval must allow for where a table's log lacks steps or outcomes."""

import math

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.statistics.checks import Verdict
from gradientdice.statistics.unlogged import Repeats, once_logged
from problems import known

STATES = 4


def ring(discount: float, back: float = 0.001):
    """A ring of four states without noise, in which going back is logged in all states but one; with its value.

    Leaving the last state forwards pays 1.
    """
    transition, reward = np.zeros((STATES, 2, STATES)), np.zeros((STATES, 2))
    for state in range(STATES):
        transition[state, 0, (state + 1) % STATES] = transition[state, 1, (state - 1) % STATES] = 1
    reward[STATES - 1, 0] = 1
    mdp = gd.mdp.TabularMDP(transition, reward, np.eye(STATES)[0])
    policy = np.tile([1 - back, back], (STATES, 1))
    return mdp, policy, mdp.value(policy, discount)


def rows_of(mdp: gd.mdp.TabularMDP, pairs: list[tuple[int, int]], times: int) -> gd.Transitions:
    states, actions = np.repeat(np.array(pairs), times, axis=0).T
    following = mdp.transition[states, actions].argmax(axis=1)
    return gd.Transitions(
        states, actions, mdp.reward[states, actions], following, initial_states=[0]
    )  # fmt: skip


EVERY_PAIR = [(state, action) for state in range(STATES) for action in range(2)]
BUT_ONE = [pair for pair in EVERY_PAIR if pair != (STATES - 1, 1)]


@pytest.mark.parametrize("discount", [0.9, 0.99, 1.0])
def test_the_interval_covers_what_an_unlogged_action_does(discount):
    """Without noise the rows alone give an interval without width, around the value of another policy."""
    mdp, policy, truth = ring(discount)
    estimate = gd.evaluate(rows_of(mdp, BUT_ONE, 500), gd.TabularPolicy(policy), discount=discount)
    low, high = known(estimate.interval)
    assert abs(estimate.value - truth) > 1e-5
    assert low < truth < high and high - low < 0.02
    assert any("widened" in note and "never logged" in note for note in estimate.notes)


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_the_share_times_the_range_bounds_the_difference_of_the_two_policies(discount):
    """On random tables, whichever action the log lacks: with exact moments in place of a log's."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        mdp = gd.mdp.TabularMDP(
            rng.dirichlet(np.ones(5), size=(5, 3)), rng.normal(size=(5, 3)), rng.dirichlet(np.ones(5))
        )
        policy = rng.dirichlet(np.ones(3), size=5)
        policy[2] = [0.9, 0.08, 0.02]
        restricted = policy.copy()
        restricted[2] = [0.92, 0.08, 0.0]
        gap = mdp.value(policy, discount) - mdp.value(restricted, discount)
        share = mdp.occupancy(restricted, discount)[2].sum() * 0.02
        q = mdp.q_values(policy, discount)
        assert gap == pytest.approx(share * (q[2, 2] - q[2, 0]), rel=1e-8), "the performance difference"
        known_pairs = np.ones((5, 3), dtype=bool)
        known_pairs[2, 2] = False
        assert abs(gap) <= share * max(np.ptp(mdp.q_values(restricted, discount)[known_pairs]), np.ptp(q))


def test_the_widening_is_the_unlogged_share_times_the_range_of_q():
    mdp, policy, _ = ring(0.9)
    problem = gd.Problem(rows_of(mdp, BUT_ONE, 500), gd.TabularPolicy(policy))
    restricted = policy.copy()
    restricted[STATES - 1] = [1.0, 0.0]
    q = mdp.q_values(restricted, 0.9)
    solved = problem.tabular_solution(0.9)
    assert solved.spread == pytest.approx(np.ptp(np.delete(q.ravel(), STATES * 2 - 1)))
    noted = gd.evaluate(problem.data, problem.policy, discount=0.9).notes
    assert any(
        f"widened by {solved.unlogged * solved.spread:.2g} on both sides for the steps" in note for note in noted
    )


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_outcomes_that_all_agree_are_only_as_sure_as_their_repeats(confidence):
    mdp, policy, truth = ring(1.0)
    for times in (2, 50, 5_000):
        problem = gd.Problem(rows_of(mdp, EVERY_PAIR, times), gd.TabularPolicy(policy))
        estimate = gd.evaluate(problem.data, problem.policy, discount=1.0, confidence=confidence)
        low, high = known(estimate.interval)
        share = -math.log((1 - confidence) / 2) / (8 * (times - 1))
        assert estimate.value == pytest.approx(truth)
        assert high - truth == pytest.approx(min(share * problem.tabular_solution(1.0).spread, 1 - truth))
        assert low < truth


def test_rows_that_differ_are_those_with_another_outcome_than_most_of_their_pair():
    data = gd.Transitions(
        [7, 7, 7, 7, 2, 2, 2, 2],
        [1, 1, 1, 1, 0, 0, 0, 0],
        [0.5, 0.5, 0.5, 0.7, 0.0, 0.0, 0.0, 0.0],
        [2, 2, 7, 2, 7, 2, 0, 0],
        terminated=[False] * 6 + [True, True],
    )
    repeats = Repeats.of(data)
    assert repeats.rows.tolist() == [4] * 8
    # Of the first four one went elsewhere and one was paid more; of the others two ended and two went on.
    assert repeats.differing.tolist() == [0.5] * 8


def test_few_slips_seen_are_not_taken_for_a_normal_number():
    """A slip in one of 300 steps: 1,200 rows have about four of them, or none."""
    mdp, policy, _ = ring(1.0, back=0.3)
    slip = np.random.default_rng(0)
    transition = (1 - 1 / 300) * mdp.transition + np.eye(STATES)[:, None, :] / 300
    truth = gd.mdp.TabularMDP(transition, mdp.reward * (1 - 1 / 300), mdp.initial).value(policy, 1.0)
    inside = 0
    for _ in range(40):
        data = rows_of(mdp, EVERY_PAIR, 150)
        stays = slip.random(len(data)) < 1 / 300
        data = gd.Transitions(data.states, data.actions, np.where(stays, 0.0, data.rewards),
                              np.where(stays, data.states, data.next_states))  # fmt: skip
        low, high = known(gd.evaluate(data, gd.TabularPolicy(policy), discount=1.0).interval)
        inside += low <= truth <= high
    assert inside >= 37


def test_rows_that_differ_need_no_such_allowance():
    mdp, policy, _ = ring(0.9)
    data = rows_of(mdp, EVERY_PAIR, 50)
    noise = np.random.default_rng(0).normal(size=len(data))
    noisy = gd.Transitions(data.states, data.actions, noise, data.next_states, data.initial_states)
    assert not any("widened" in note for note in gd.evaluate(noisy, gd.TabularPolicy(policy), discount=0.9).notes)


def test_pairs_that_one_row_has_are_not_trusted():
    mdp, policy, _ = ring(1.0, back=0.3)
    once = gd.evaluate(rows_of(mdp, EVERY_PAIR, 1), gd.TabularPolicy(policy), discount=1.0)
    assert once.verdict is Verdict.DO_NOT_TRUST
    assert any("logged once" in reason and "log more data" in reason for reason in once.reasons)


def test_the_share_of_the_mass_on_pairs_with_one_row():
    data = gd.Transitions([0, 0, 1, 2, 2], [0, 0, 1, 0, 0], np.zeros(5), np.zeros(5, dtype=int),
                          weights=[1.0, 1.0, 1.0, 1.0, 0.0])  # fmt: skip
    repeats = Repeats.of(data)
    assert repeats.rows.tolist() == [2, 2, 1, 1, 1], "a row of weight 0 is no repeat"
    check = once_logged(data, np.array([1.0, 1.0, 0.1, 0.1, 5.0]), repeats)
    assert check.value == pytest.approx(0.2 / 2.2) and check.verdict is Verdict.CAUTION
    assert once_logged(data, np.array([1.0, 1.0, 0.0, 0.0, 5.0]), repeats).verdict is Verdict.TRUST
