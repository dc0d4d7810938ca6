"""`ModelRollouts` through the front door, and what it refuses."""

import subprocess
import sys

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.base.effort import Effort
from gradientdice.default.model.needs import can_simulate
from gradientdice.default.model.settings import SETTINGS, ModelSettings
from problems import linear_gaussian, random_problem

TINY = ModelSettings(members=2, width=16, steps=200, batch=64, paths=32, horizon=20, value_width=16, value_steps=200)


def test_the_answer_has_no_interval_and_is_not_trusted_blindly(monkeypatch):
    monkeypatch.setitem(SETTINGS, Effort.QUICK, TINY)
    data, policy, truth = linear_gaussian(1000, np.random.default_rng(0))
    estimate = gd.evaluate(data, policy, gd.ModelRollouts(0.9, effort="quick"))
    assert estimate.value == pytest.approx(truth, abs=0.1)
    assert estimate.interval is None and estimate.verdict is gd.Verdict.CAUTION
    for words in ("unexplained on held-out rows", "networks' own values differ", "left the log's range"):
        assert any(words in note for note in estimate.notes)


def test_policies_that_cannot_be_simulated():
    data, policy, _ = linear_gaussian(100, np.random.default_rng(0))
    logged = gd.LoggedPolicy(next_actions=np.zeros((100, 1)), initial_actions=np.zeros((2000, 1)))
    assert can_simulate(policy) and not can_simulate(logged)
    assert not can_simulate(gd.TabularPolicy([[0.5, 0.5]]))
    with pytest.raises(gd.InputError, match="LoggedPolicy is known at the log's states only"):
        gd.evaluate(data, logged, gd.ModelRollouts(0.9))


def test_tables_solvers_and_words_that_it_does_not_take():
    mdp, target, data_dist = random_problem(0)
    data = mdp.sample(200, data_dist, np.random.default_rng(0))
    with pytest.raises(gd.InputError, match="these are a table: use GradientDICE"):
        gd.evaluate(data, gd.TabularPolicy(target), gd.ModelRollouts(0.9))
    with pytest.raises(gd.InputError, match="ModelRollouts takes no solver"):
        gd.evaluate(data, gd.TabularPolicy(target), gd.ModelRollouts(0.9), solver=gd.ClosedForm())
    with pytest.raises(gd.InputError, match="quick, normal, thorough, not 'fast'"):
        gd.ModelRollouts(0.9, effort="fast")
    with pytest.raises(gd.InputError, match="discount"):
        gd.ModelRollouts(1.5)


def test_the_estimator_does_not_import_jax():
    code = "import gradientdice as gd, sys; gd.ModelRollouts(0.9); assert not {'jax', 'equinox'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
