"""From an answer to an estimate: values and intervals that the rewards do not allow."""

from dataclasses import dataclass

import numpy as np
import pytest

import gradientdice as gd
from problems import known


@dataclass(frozen=True)
class Says:
    """An estimator that says some number, with an error of 0.08."""

    value: float
    discount: float = 0.9

    def answer(self, problem: gd.Problem, solver: object = None) -> gd.Answer:
        n = len(problem.data)
        shares = np.where(np.arange(n) % 2, 0.08, -0.08) / np.sqrt(n)
        return gd.Answer(
            value=self.value,
            influence=gd.Influence(shares, None, np.ones(n), np.zeros(n)),
            ratio=np.ones(n),
            evidence=gd.Evidence(mean_ratio=1.0),
        )


def log(n=400):
    rng = np.random.default_rng(0)
    return gd.Transitions(
        rng.integers(0, 3, n), rng.integers(0, 2, n), np.arange(n) % 2, rng.integers(0, 3, n), initial_states=[0, 1, 2]
    )


POLICY = gd.TabularPolicy(np.full((3, 2), 0.5))


def test_a_value_that_the_rewards_do_not_allow_is_cut_and_not_trusted():
    estimate = gd.evaluate(log(), POLICY, Says(1.3))
    assert estimate.value == 1.0 and known(estimate.interval) == (1.0, 1.0)
    assert estimate.uncut_value == estimate.to_dict()["uncut_value"] == 1.3
    assert estimate.verdict is gd.Verdict.DO_NOT_TRUST
    assert any("1.3" in reason and "what would help" in reason for reason in estimate.reasons)
    assert any("1.3" in note and "cut" in note for note in estimate.notes)
    assert estimate.total == pytest.approx(10.0), "the total follows the value that is shown"


def test_an_end_of_the_interval_that_the_rewards_do_not_allow_is_cut():
    estimate = gd.evaluate(log(), POLICY, Says(0.9))
    low, high = known(estimate.interval)
    assert high == 1.0 and low == pytest.approx(0.9 - 1.966 * 0.08, abs=0.002)
    assert estimate.verdict is not gd.Verdict.DO_NOT_TRUST and estimate.uncut_value is None


def test_compare_does_not_choose_a_value_that_had_to_be_cut():
    table = gd.compare(log(), POLICY, [Says(1.3), gd.GradientDICE(0.9)])
    rows = {row["estimator"]: row for row in table.to_dict("records")}
    assert rows[repr(Says(1.3))]["uncut_value"] == 1.3 and rows[repr(Says(1.3))]["choice"] == ""
    assert np.isnan(rows[repr(gd.GradientDICE(0.9))]["uncut_value"])
