"""The difference to the behaviour, paired by episode."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.statistics.behavior import behavior_shares, behavior_value
from gradientdice.statistics.intervals import NormalInterval, independent_shares, standard_error
from gradientdice_studies.control.improvement import improvement
from gradientdice_studies.coverage.problems import problems
from problems import known


def answered(data, policy, discount):
    problem = gd.Problem(data, policy)
    found = gd.GradientDICE(discount).answer(problem)
    return found.value, independent_shares(known(found.influence), data)


@pytest.mark.parametrize(("name", "discount"), [("random 5×2", 0.8), ("ending, random 6×2", 0.8), ("random 5×2", 1.0)])
def test_it_covers_the_difference_and_is_sharper_than_two_intervals(name, discount):
    problem = problems()[name]()
    truth = problem.truth(discount) - replace(problem, target=problem.behavior).truth(discount)
    inside, sharper = 0, []
    for seed in range(60):
        data = problem.trajectories(2000, np.random.default_rng(seed))
        value, samples = answered(data, gd.TabularPolicy(problem.target), discount)
        found = known(improvement(data, discount, value, samples, 0.95))
        low, high = found.interval
        inside += low <= truth <= high
        low, high = known(known(behavior_value(data, discount, 0.95)).interval)
        sharper.append(found.standard_error / np.hypot(standard_error(samples), (high - low) / 3.92))
    assert 52 <= inside
    assert np.median(sharper) < 1


def test_the_same_policy_is_no_improvement():
    """A value that is the behaviour's own has the same shares: the difference is 0, without any error."""
    problem = problems()["random 5×2"]()
    data = problem.trajectories(500, np.random.default_rng(0))
    value, shares = known(behavior_shares(data, 0.8))
    found = known(improvement(data, 0.8, value, [shares], 0.95))
    assert found.value == 0 and found.standard_error == 0 and found.decision == "undecided"


def test_shares_of_the_behaviour_are_those_of_its_interval():
    problem = problems()["ending, random 6×2"]()
    data = problem.trajectories(800, np.random.default_rng(1))
    value, shares = known(behavior_shares(data, 0.9))
    plain = known(behavior_value(data, 0.9, 0.95))
    assert value == plain.value and len(shares) == data.units.count
    assert NormalInterval().interval(value, [shares], 0.95, 0) == pytest.approx(plain.interval)


def test_room_widens_the_interval_and_may_undo_the_decision():
    data = gd.Transitions(
        np.zeros(40, dtype=int), np.zeros(40, dtype=int), np.tile([0.0, 1.0], 20), np.zeros(40, dtype=int)
    )
    samples = [np.tile([-0.01, 0.01], 20) / 40]
    plain = known(improvement(data, 1.0, 1.0, samples, 0.95))
    wide = known(improvement(data, 1.0, 1.0, samples, 0.95, (0.6, 0.1)))
    assert plain.decision == "better" and wide.decision == "undecided"
    assert wide.interval == pytest.approx((plain.interval[0] - 0.6, plain.interval[1] + 0.1))
    assert known(improvement(data, 1.0, -1.0, samples, 0.95)).decision == "worse"


def test_without_a_value_of_the_behaviour_there_is_no_difference():
    data = gd.Transitions([0, 1], [0, 0], [1.0, 2.0], [1, 0], initial_states=[0])
    assert improvement(data, 0.9, 1.0, [np.zeros(2)], 0.95) is None
