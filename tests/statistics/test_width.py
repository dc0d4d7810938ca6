"""An interval is judged by how wide it is beside what is possible and beside what is to be decided."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.statistics.behavior import BehaviorValue
from gradientdice.statistics.possible import PossibleRange
from gradientdice.statistics.units import width_checks

DEVIATION = 2.0  # of the rewards 0, 0, 4 and 4
POSSIBLE = PossibleRange(0.0, 4.0)


def found(value, half_width, behavior):
    known = None if behavior is None else BehaviorValue(behavior, None, 0.0)
    return {check.name: check for check in width_checks(DEVIATION, value, half_width, POSSIBLE, known)}


def test_by_hand():
    """The rewards have a range of 4 and a standard deviation of 2, a quarter of which is 0.5."""
    checks = found(3.0, 1.0, behavior=1.0)
    assert checks["half-width ÷ range of the rewards"].value == pytest.approx(0.25)
    assert checks["half-width ÷ what is to be decided"].value == pytest.approx(1 / 2)
    assert found(3.0, 1.0, behavior=3.1)["half-width ÷ what is to be decided"].value == pytest.approx(1 / 0.5)
    assert found(3.0, 1.0, behavior=None)["half-width ÷ what is to be decided"].value == pytest.approx(1 / 0.5)


def test_rewards_that_are_all_alike_leave_nothing_to_decide():
    assert not list(width_checks(DEVIATION, 1.0, 0.1, PossibleRange(1.0, 1.0), None))


def test_the_verdict_looks_at_the_whole_interval(rng):
    """Ten rows with noise of 3 around 0 and 1: an honest interval that is of no use."""
    n = 60
    data = gd.Transitions(
        np.zeros(n, dtype=int), np.arange(n) % 2, rng.normal(size=n) * 3, np.zeros(n, dtype=int), initial_states=[0]
    )
    estimate = gd.evaluate(data, gd.TabularPolicy([[0.5, 0.5]]), discount=0.5)
    assert estimate.interval is not None
    wide = gd.evaluate(data, gd.TabularPolicy([[0.5, 0.5]]), discount=0.5, confidence=0.9999999)
    names = [check.name for check in wide.checks if check.verdict is not gd.Verdict.TRUST]
    assert wide.verdict is not gd.Verdict.TRUST and "half-width ÷ range of the rewards" in names
