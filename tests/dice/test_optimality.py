"""A learner that has not come to rest says so, and what would help."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.dice.optimality import drift, unsolved_share
from gradientdice.dice.solution import Curve
from problems import known


@pytest.fixture(scope="module")
def boyan():
    target = gd.TabularPolicy(np.tile([0.1, 0.9], (13, 1)))
    data = gd.mdp.boyan_chain("continuing").sample(3000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
    return gd.Problem(data, target)


def test_the_share_is_one_at_the_start_and_zero_at_the_saddle_point(boyan):
    for discount in (0.9, 1.0):
        estimator = gd.GradientDICE(discount)
        best = gd.ClosedForm().fit(estimator, boyan).solution.ratio_params
        assert unsolved_share(estimator, boyan.moments, np.zeros(26)) == pytest.approx(1)
        assert unsolved_share(estimator, boyan.moments, best) == pytest.approx(0, abs=1e-12)
        # P is a quadratic: a quarter of it is left half way.
        assert unsolved_share(estimator, boyan.moments, best / 2) == pytest.approx(0.25)


def test_objectives_that_are_not_quadratic_have_no_share(boyan):
    assert unsolved_share(gd.GenDICE(0.9), boyan.moments, np.ones(26)) is None
    assert unsolved_share(gd.GradientDICE(0.9, norm_penalty=np.inf), boyan.moments, np.ones(26)) is None


def test_the_drift_is_that_of_the_last_two_fifths():
    rewards = np.array([0.0, 2.0])
    curve = Curve(np.arange(10), np.array([9.0, 9, 9, 9, 9, 9, 1, 2, 3, 4]), "value")
    assert drift(curve, rewards) == pytest.approx(2)
    assert drift(Curve(np.arange(3), np.ones(3), "value"), rewards) is None
    assert drift(Curve(np.arange(10), np.full(10, np.inf), "value"), rewards) is None
    assert drift(curve, np.ones(2)) is None


def test_too_few_steps_are_not_trusted_and_ask_for_more_steps(boyan):
    """20,000 steps in balls of radius 20 give half of the value."""
    estimate = gd.evaluate(
        boyan.data, boyan.policy, gd.GradientDICE(0.9), solver=gd.ProjectedPrimalDual(20_000, radius=20)
    )
    exact = gd.evaluate(boyan.data, boyan.policy, gd.GradientDICE(0.9))
    assert abs(estimate.value) < 0.6 * abs(exact.value)
    assert estimate.verdict is gd.Verdict.DO_NOT_TRUST and estimate.status is gd.Status.NOT_CONVERGED
    assert "more steps" in " ".join(estimate.reasons) and "features" not in estimate.reasons[0].split("Remedies")[1]
    checks = {check.name: check for check in known(estimate.diagnostics).checks()}
    assert checks["objective left to go"].verdict is gd.Verdict.DO_NOT_TRUST
    assert "steps" in checks["mean ratio − 1"].remedy


def test_enough_steps_are_a_caution_for_want_of_an_interval(boyan):
    estimate = gd.evaluate(boyan.data, boyan.policy, gd.GradientDICE(0.9), solver=gd.PrimalDual(30_000, 0.25, 32))
    assert estimate.status.ok and estimate.verdict is gd.Verdict.CAUTION
    assert known(known(estimate.diagnostics).unsolved) < 0.02
    assert any("interval" in reason for reason in estimate.reasons)
