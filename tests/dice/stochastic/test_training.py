"""Grids: one program for each structure; parts, devices, neighbours and stops change no number."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
import pytest

import gradientdice as gd
from dice.stochastic.small import group, one_hot_log, same, table_log
from gradientdice.base.checkpoint import load_checkpoint, save_checkpoint
from gradientdice.dice.stochastic import training
from gradientdice.dice.stochastic.functions import LinearClass
from gradientdice.dice.stochastic.primal_dual import group_cases
from gradientdice.dice.stochastic.training import collect, run_groups
from problems import known

TESTS = Path(__file__).parents[2]
GRID = [gd.GradientDICE(g, lam) for g in (0.5, 0.9, 1.0) for lam in (0.5, 1.0)] + [gd.GenDICE(0.9), gd.DualDICE(0.9)]
SOLVERS = [gd.PrimalDual(120, rate, record_every=40) for rate in (0.05, 0.1)]


def run(groups, seeds, **options):
    return collect(run_groups(groups, seeds, **options))


def test_numbers_share_a_program_and_structures_do_not():
    cases, functions = [(estimator, solver) for estimator in GRID for solver in SOLVERS], LinearClass(10)
    assert len(group_cases(cases, functions)) == 3
    assert len(group_cases(cases, functions, split_average=True)) == 4
    longer = [(GRID[0], gd.PrimalDual(121, 0.1, record_every=40))]
    assert len(group_cases(cases + longer, functions)) == 4
    ridged = [(gd.GradientDICE(0.9, ridge=0.1), SOLVERS[0])]
    plan, numbers = group_cases(cases + ridged, functions)[0]
    assert plan.with_ridge and len(numbers) == 13


@pytest.mark.slow
def test_a_network_that_diverges_does_not_spoil_the_others():
    (alone,) = run([group("networks", [0.01])], [0, 1])
    (both,) = run([group("networks", [0.01, 1e12])], [0, 1])
    assert (both.diverged_at[0] == -1).all() and (both.diverged_at[1] >= 0).all()
    assert np.array_equal(alone.curve[0], both.curve[0])
    assert np.isinf(both.curve[1, :, -1]).all()
    finite = [np.isfinite(leaf).all() for leaf in jax.tree.leaves(both.players)]
    assert all(finite), "the last finite parameters are given"


@pytest.mark.slow
def test_networks_in_small_parts_are_the_same_grid():
    whole, parts = (run([group("networks", [0.01, 0.02])], range(2), max_bytes=size)[0] for size in (None, 1))
    assert same(whole, parts)


def test_runs_of_one_seed_see_the_same_transitions():
    """A case is the same run whichever cases are beside it, with options that work on whole gradients, too."""
    options: dict[str, Any] = {"clip_norm": 0.5}
    (three,) = run([group("table", [0.01, 0.02, 0.03], **options)], [0, 1])
    (one,) = run([group("table", [0.02], **options)], [1])
    np.testing.assert_allclose(three.curve[1, 1], one.curve[0, 0], rtol=1e-5)


@pytest.mark.parametrize("kind", ["table", pytest.param("networks", marks=pytest.mark.slow)])
def test_the_way_of_accelerators_gives_the_same_numbers(kind, monkeypatch):
    """They advance all runs together, block by block, with records as a program of their own."""
    own = group(kind, [0.01, 0.02])
    (here,) = run([own], [0, 1])
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")
    (there,) = run([own], [0, 1])
    np.testing.assert_allclose(here.curve, there.curve, rtol=1e-4, atol=1e-5)


DEVICES = """
import sys; sys.path.insert(0, {tests!r})
import numpy as np, jax
from dice.stochastic.small import group
from gradientdice.dice.stochastic.training import collect, run_groups
assert len(jax.devices()) == 3
groups = [group(kind, [0.01, 0.02]) for kind in ("table", "networks")]
table, networks = collect(run_groups(groups, [0, 1]))
np.savez(sys.argv[1], table=table.curve, networks=networks.curve)
"""


@pytest.mark.slow
def test_several_devices_share_a_grid(tmp_path):
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=3"}
    code, output = DEVICES.format(tests=str(TESTS)), tmp_path / "curves.npz"
    subprocess.run([sys.executable, "-c", code, str(output)], env=environment, check=True)
    kinds = ("table", "networks")
    here = run([group(kind, [0.01, 0.02]) for kind in kinds], [0, 1])
    with np.load(output) as found:
        for kind, outcome in zip(kinds, here, strict=True):
            np.testing.assert_allclose(found[kind], outcome.curve, rtol=1e-4, atol=1e-5)


EVERYTHING: dict[str, Any] = {"average": 0.9, "target_rate": 0.1, "clip_norm": 1.0}


@pytest.mark.parametrize("kind", ["table", pytest.param("networks", marks=pytest.mark.slow)])
def test_a_run_that_stops_goes_on_bit_for_bit(kind, tmp_path):
    own = group(kind, [0.01], optimizer=optax.adam(1.0), **EVERYTHING)
    (whole,) = run([own], [5])
    calls = []

    def stop(blocks, figures):
        calls.append(blocks)
        if len(calls) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run([own], [5], checkpoint=tmp_path, watch=stop)
    done = []
    (again,) = run([own], [5], checkpoint=tmp_path, watch=lambda blocks, figures: done.append(blocks))
    assert 0 < len(done) < 10, "it did not start anew"
    assert same(whole, again)


def test_checkpoints_are_refused_clearly(tmp_path, monkeypatch):
    path = tmp_path / "state.safetensors"
    save_checkpoint(path, {"a": np.arange(3)}, {"run": 1})
    assert np.array_equal(known(load_checkpoint(path, {"run": 1}))["a"], np.arange(3))
    assert load_checkpoint(tmp_path / "none.safetensors", {}) is None
    with pytest.raises(gd.InputError, match="other settings"):
        load_checkpoint(path, {"run": 2})

    def full(*arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(gd.InputError, match="No space left.*still there"):
            save_checkpoint(path, {"a": np.arange(4)}, {"run": 1})
    assert len(known(load_checkpoint(path, {"run": 1}))["a"]) == 3, "the last good one stays"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(gd.InputError, match="not a whole checkpoint"):
        load_checkpoint(path, {"run": 1})


@pytest.mark.parametrize("kind", ["table", "networks"])
def test_evaluate_and_sweep_go_on_from_a_checkpoint(kind, tmp_path):
    if kind == "table":
        (data, policy), functions = table_log(200), gd.Tabular(5, 2)
    else:
        (_, _, data, policy), functions = one_hot_log(200), gd.MLP((8,))
    solver = gd.PrimalDual(20, 0.01, 16, record_every=10)
    for call in (
        lambda **more: (
            gd.evaluate(data, policy, gd.GradientDICE(0.5), functions=functions, solver=solver, **more).value
        ),
        lambda **more: gd.sweep(data, policy, gd.GradientDICE(0.5), functions, solver, seeds=2, progress=False, **more)[
            "value"
        ].tolist(),
    ):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        plain, first = call(), call(checkpoint=folder)
        written = {path: path.read_bytes() for path in folder.rglob("*.safetensors")}
        assert written and call(checkpoint=folder) == first == plain
        assert {path: path.read_bytes() for path in folder.rglob("*.safetensors")} == written, "nothing was done again"


def test_a_checkpoint_belongs_to_its_settings_and_data(tmp_path):
    data, policy = table_log(200)
    settings = {"estimator": gd.GradientDICE(0.5), "solver": gd.PrimalDual(20, 0.01, 16, record_every=10)}

    def value(data=data, **changed):
        return gd.evaluate(data, policy, **(settings | changed), checkpoint=tmp_path).value

    first = value()
    changed = gd.Transitions(data.states, data.actions, data.rewards + 1, data.next_states, data.initial_states)
    others: list[dict[str, Any]] = [
        {"data": changed},
        {"estimator": gd.GradientDICE(0.6)},
        {"solver": gd.PrimalDual(20, 0.02, 16, record_every=10)},
        {"solver": gd.PrimalDual(20, 0.01, 16, record_every=10, optimizer=optax.adam(1.0))},
        {"seed": 1},
    ]
    for other in others:
        with pytest.raises(gd.InputError, match="other settings or data"):
            value(**other)
    assert value() == first


def damped(share):
    """An optimiser of one's own, whose setting is in its closure alone."""

    def update(gradients, state, params=None):
        return jax.tree.map(lambda leaf: -share * leaf, gradients), state

    return optax.GradientTransformation(lambda params: (), update)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (optax.adam(1.0), optax.adam(1.0, b1=0.1)),
        pytest.param(optax.sgd(1.0, momentum=0.9), optax.sgd(1.0, momentum=0.5), marks=pytest.mark.slow),
        pytest.param(damped(0.5), damped(0.25), marks=pytest.mark.slow),
    ],
)
def test_a_checkpoint_belongs_to_its_optimiser(tmp_path, first, second):
    data, policy = table_log(200)

    def value(optimizer, checkpoint=None):
        solver = gd.PrimalDual(20, 0.01, 16, record_every=10, optimizer=optimizer)
        return gd.evaluate(data, policy, gd.GradientDICE(0.5), solver=solver, checkpoint=checkpoint).value

    begun = value(first, tmp_path)
    with pytest.raises(gd.InputError, match=r"other settings or data \(program\)"):
        value(second, tmp_path)
    assert value(first, tmp_path) == begun != value(second)


def test_a_checkpoint_belongs_to_its_version_and_precision(tmp_path, monkeypatch):
    own = group("table", [0.01])
    run([own], [5], checkpoint=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(training, "provenance", lambda: {"versions": {"gradientdice": "another"}})
        with pytest.raises(gd.InputError, match=r"\(versions\)"):
            run([own], [5], checkpoint=tmp_path)
    jax.config.update("jax_enable_x64", True)
    try:
        with pytest.raises(gd.InputError, match="double precision"):
            run([own], [5], checkpoint=tmp_path)
    finally:
        jax.config.update("jax_enable_x64", False)
    run([own], [5], checkpoint=tmp_path)


@pytest.mark.parametrize("every", [pytest.param(41, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)])
def test_one_flipped_bit_is_refused(tmp_path, every):
    path = tmp_path / "state.safetensors"
    save_checkpoint(path, {"a": np.arange(3), "b": np.ones(2, np.float32)}, {"run": 1})
    content = path.read_bytes()
    for bit in range(0, 8 * len(content), every):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(gd.InputError, match="not a whole checkpoint"):
            load_checkpoint(path, {"run": 1})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["table", "networks"])
def test_stopping_after_every_portion_changes_no_bit(kind, tmp_path):
    own = group(kind, [0.01], optimizer=optax.adam(1.0), **EVERYTHING)
    (whole,) = run([own], [5])
    for portion in range(1, 11):
        folder, calls = tmp_path / str(portion), []

        def stop(blocks, figures, calls=calls, portion=portion):
            calls.append(blocks)
            if len(calls) == portion:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run([own], [5], checkpoint=folder, watch=stop)
        (again,) = run([own], [5], checkpoint=folder)
        assert same(whole, again), portion


def test_an_interrupt_ends_the_runs_at_their_next_portion(tmp_path):
    """The main thread is interrupted while it waits, as Ctrl-C does; the runs leave a checkpoint that goes on."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background inherit none
    own = group("table", [0.01])
    (whole,) = run([own], [1])
    calls, results = [], run_groups([own], [1], checkpoint=tmp_path, watch=lambda *told: calls.append(time.sleep(0.2)))
    timer = threading.Timer(0.5, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            collect(results)
    finally:
        signal.signal(signal.SIGINT, before)
    assert 0 < len(calls) < 10, "it did not run to its end"
    (again,) = run([own], [1], checkpoint=tmp_path)
    assert same(whole, again)
