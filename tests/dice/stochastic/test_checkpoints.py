"""Runs that stop go on where they were, to the same bits; checkpoints that cannot be used are refused."""

import signal
import threading
import time
from typing import Any

import jax
import numpy as np
import optax
import pytest

import gradientdice as gd
from dice.stochastic.small import group, one_hot_log, same, table_log
from gradientdice.base.checkpoint import load_checkpoint, save_checkpoint
from gradientdice.dice.stochastic import training
from gradientdice.dice.stochastic.grid import collect, run_groups
from problems import known

EVERYTHING: dict[str, Any] = {"average": 0.9, "target_rate": 0.1, "clip_norm": 1.0}


def run(*arguments, **options):
    return collect(run_groups(*arguments, **options))


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
