"""Closed forms through JAX, on whatever devices it has, against NumPy."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.base import accelerator
from gradientdice.dice.closed_form import whitening
from gradientdice.dice.ridge_path import ridge_path
from gradientdice.problem.folds import Folds, fold_moments, moments_without
from gradientdice.problem.moments import Moments
from gradientdice.problem.stream import LogDesign
from gradientdice.statistics.flow import flow_residuals

FIELDS = ("gram", "next_gram", "mean", "reward", "initial")


def control(continuous: bool) -> tuple[gd.Transitions, Any]:
    """Episodes of eight steps in two dimensions, weighted, with ends or with continuous actions."""
    rng = np.random.default_rng(5)
    n = 400
    states = rng.normal(size=(n, 2))
    following = 0.8 * states + 0.3 * rng.normal(size=states.shape)
    columns: dict[str, Any] = {"episodes": np.arange(n) // 8, "weights": rng.uniform(0.5, 2, size=n)}
    columns["initial_states"] = rng.normal(size=(50, 2))
    rewards = states[:, 0] + rng.normal(size=n)
    if continuous:
        policy = gd.SamplingPolicy(lambda s, rng: s[:, :1] + rng.normal(size=(len(s), 1)))
        return gd.Transitions(states, rng.normal(size=(n, 1)), rewards, following, **columns), policy
    columns["terminated"] = np.arange(n) % 40 == 39
    policy = gd.DiscretePolicy(lambda s: np.column_stack([0.3 + 0.0 * s[:, 0], 0.7 + 0.0 * s[:, 0]]), 2)
    return gd.Transitions(states, rng.integers(0, 2, n), rewards, following, **columns), policy


FUNCTIONS = {
    "fourier": gd.RandomFourier(20, (0.3, 1.5)),
    "nystrom": gd.Nystrom(15, 1.0),
    "given": gd.LinearFeatures(lambda states, actions: np.column_stack([states, states**2])),
}


@pytest.fixture
def on(monkeypatch):
    def choose(place: str) -> None:
        monkeypatch.setenv(accelerator.VARIABLE, place)

    return choose


def apart(one: Moments, other: Moments) -> float:
    """The largest difference as a share of each field's largest entry."""
    pairs = [(getattr(one, name), getattr(other, name)) for name in FIELDS]
    assert one.weight == pytest.approx(other.weight, rel=1e-14)
    assert (one.absorbing_weight or 0.0) == pytest.approx(other.absorbing_weight or 0.0, rel=1e-14)
    return max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in pairs)


@pytest.mark.parametrize(("name", "continuous"), [*((name, False) for name in FUNCTIONS), ("fourier", True)])
def test_moments_in_chunks_and_folds_are_numpys(on, name, continuous):
    (data, policy), functions = control(continuous), FUNCTIONS[name]
    folds = Folds.create(data, 3, 0)

    def moments() -> list[Moments]:
        # The last chunk is shorter, and filled up.
        log = LogDesign(data, policy, functions, chunk_rows=150)
        return [Moments.from_design(log), *fold_moments(log, folds), *moments_without(log, folds)]

    on("cpu")
    expected = moments()
    on("device")
    assert LogDesign(data, policy, functions).devices is not None
    assert max(apart(a, b) for a, b in zip(expected, moments(), strict=True)) < 1e-13


def test_rows_on_a_device_are_rows(on):
    data, policy = control(continuous=False)
    on("cpu")
    design = LogDesign(data, policy, FUNCTIONS["fourier"]).first
    on("device")
    log = LogDesign(data, policy, FUNCTIONS["fourier"])
    found, rows = log.first, np.array([3, 50, 399])
    params = np.random.default_rng(0).normal(size=(log.width, 2))
    for name in ("current", "following"):
        one, other = getattr(design, name), getattr(found, name)
        assert (len(one), one.width) == (len(other), other.width)
        np.testing.assert_allclose(one.matrix(log.width), other.matrix(log.width), atol=1e-13)
        np.testing.assert_allclose(one.predict(params), other.predict(params), atol=1e-12)
        taken = other.take(rows).take(slice(1, None))
        np.testing.assert_allclose(one.take(rows[1:]).predict(params), taken.predict(params), atol=1e-12)
        np.testing.assert_allclose(one.take(rows[1:]).matrix(log.width), taken.matrix(log.width), atol=1e-13)


def test_solves_are_numpys(on):
    data, policy = control(continuous=False)
    on("cpu")
    moments = gd.Problem(data, policy, FUNCTIONS["fourier"]).moments
    free = np.array([0, 21, 42])

    def solved() -> tuple[Any, ...]:
        fits = ridge_path(moments, 0.9, [1e-4, 1e-2], free)
        basis = whitening(moments.gram, 1e-4)
        return fits, basis @ basis.T, gd.solve(gd.GradientDICE(0.9), moments)

    fits, projector, solution = solved()
    on("device")
    found, found_projector, found_solution = solved()
    for one, other in zip(fits, found, strict=True):
        np.testing.assert_allclose(one.ratio, other.ratio, atol=1e-9 * np.abs(one.ratio).max())
        np.testing.assert_allclose(one.value, other.value, atol=1e-9 * np.abs(one.value).max())
        # LAPACK estimates it from below.
        assert one.condition_number <= other.condition_number * (1 + 1e-6) < 10 * one.condition_number
    np.testing.assert_allclose(projector, found_projector, atol=1e-8 * np.abs(projector).max())
    assert found_solution.status is solution.status
    scale = np.abs(solution.ratio_params).max()
    np.testing.assert_allclose(solution.ratio_params, found_solution.ratio_params, atol=1e-7 * scale)


def test_a_singular_ridge_has_no_solution_on_a_device_either(on):
    nothing = Moments(np.zeros((2, 2)), np.zeros((2, 2)), np.zeros(2), np.zeros(2), np.zeros(2))
    on("device")
    assert ridge_path(nothing, 0.5, [1.0], np.zeros(0, dtype=int)) == []


@pytest.mark.parametrize(("discount", "continuous"), [pytest.param(0.9, False, marks=pytest.mark.slow), (1.0, True)])
def test_whole_answers_agree(on, continuous, discount):
    data, policy = control(continuous)
    answers = []
    for place in ("cpu", "device"):
        on(place)
        searched = gd.evaluate(data, policy, discount=discount, effort="quick")
        given = gd.evaluate(data, policy, discount=discount, functions=FUNCTIONS["fourier"])
        answers.append([searched.value, *searched.interval, given.value, *given.interval])  # pyright: ignore
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-8)


@pytest.mark.slow
def test_answers_with_a_model_agree_whose_networks_learn_in_a_thread(on):
    """Here the networks are trained on the processor in both cases, to the same bits."""
    data, policy = control(continuous=False)
    answers = []
    for place in ("cpu", "device"):
        on(place)
        found = gd.evaluate(data, policy, discount=0.9)
        answers.append([found.value, *found.interval])  # pyright: ignore
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-8)


def test_the_flow_check_is_numpys(on):
    ratio = np.random.default_rng(3).uniform(0, 2, size=400)
    for continuous in (False, True):
        data, policy = control(continuous)
        for discount in (0.9, 1.0):
            found = []
            for place in ("cpu", "device"):
                on(place)
                found.append(flow_residuals(gd.Problem(data, policy), discount, [ratio, ratio**2]))
            np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


def test_scanned_moments_are_numpys(on, tmp_path, monkeypatch):
    """Batches of any size are added in pieces of one size."""
    monkeypatch.setattr("gradientdice.problem.scan.moments.BATCH_ROWS", 64)
    data, policy = control(continuous=False)
    data.save(tmp_path / "log.parquet")
    log = gd.scan(tmp_path / "log.parquet", batch_rows=150)
    found = []
    for place in ("cpu", "device"):
        on(place)
        found.append(Moments.from_transitions(log, policy, FUNCTIONS["fourier"]))
    assert apart(*found) < 1e-13


def test_scanned_answers_are_numpys(on, tmp_path, monkeypatch):
    monkeypatch.setattr("gradientdice.problem.scan.moments.BATCH_ROWS", 64)
    data, policy = control(continuous=False)
    data.save(tmp_path / "log.parquet")
    log, answers = gd.scan(tmp_path / "log.parquet", batch_rows=150), []
    for place in ("cpu", "device"):
        on(place)
        found = gd.evaluate(log, policy, discount=0.9, functions=gd.RandomFourier(8, 1.0))
        answers.append([found.value, *found.interval])  # pyright: ignore
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-8)


SHARDED = """
import os, sys, numpy as np, jax
import gradientdice as gd
from gradientdice.problem.stream import LogDesign
from test_device_sums import FUNCTIONS, apart, control
from gradientdice.problem.folds import Folds, fold_moments
from gradientdice.problem.moments import Moments
assert len(jax.devices()) == 4
data, policy = control(False)
folds = Folds.create(data, 3, 0)
found = {}
for place in ("cpu", "device"):
    os.environ["GRADIENTDICE_CLOSED_FORM"] = place
    log = LogDesign(data, policy, FUNCTIONS["fourier"], chunk_rows=150)
    found[place] = [Moments.from_design(log), *fold_moments(log, folds)]
shards = log.first.current.values.sharding
assert len(shards.device_set) == 4 and not shards.is_fully_replicated
print(max(apart(a, b) for a, b in zip(found["cpu"], found["device"])))
"""


def test_several_devices_share_the_rows():
    paths = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", SHARDED],
        env={**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4", "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1e-12
