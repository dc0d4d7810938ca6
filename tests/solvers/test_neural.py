"""Networks: gradients against finite differences, answers against exact values, and runs that survive."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import optax
import pytest

import gradientdice as gd
from gradientdice.functions.inputs import network_inputs
from gradientdice.solvers.checkpoint import load_checkpoint, save_checkpoint
from gradientdice.solvers.grid import hyper_parameters
from gradientdice.solvers.neural.grid import NeuralGroup, run_neural
from gradientdice.solvers.neural.solve import predict, train_networks
from gradientdice.solvers.neural.training import NeuralData

ESTIMATORS = [
    gd.GradientDICE(0.7, norm_penalty=0.8, ridge=0.1),
    gd.GenDICE(0.7, norm_penalty=0.8),
    gd.DualDICE(0.7, ridge=0.1),
]


def one_hot_log(n=3000, seed=0):
    """A small MDP whose states are shown as indicators, with its target and exact values."""
    rng = np.random.default_rng(seed)
    mdp = gd.mdp.TabularMDP(rng.dirichlet(np.ones(4), size=(4, 2)), rng.normal(size=(4, 2)), np.full(4, 0.25))
    target = rng.dirichlet(np.ones(2), size=4)
    data = mdp.sample(n, np.full((4, 2), 1 / 8), rng)
    eye = np.eye(4)
    shown = gd.Transitions(
        eye[data.states], data.actions, data.rewards, eye[data.next_states], initial_states=eye[data.initial_states]
    )
    return mdp, target, shown, gd.DiscretePolicy(lambda s: target[s.argmax(axis=1)], 2)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_one_step_is_the_gradient_of_the_objective(estimator):
    """On a log of one row the minibatch is known; the step must be that of central differences in NumPy."""
    rng = np.random.default_rng(0)
    data = gd.Transitions(
        rng.normal(size=(1, 2)),
        rng.normal(size=(1, 1)),
        [1.0],
        rng.normal(size=(1, 2)),
        initial_states=rng.normal(size=(1, 2)),
    )
    policy = gd.SamplingPolicy(lambda s, r: np.full((len(s), 1), 0.3), draws=1)
    functions = gd.MLP((5,), ratio_start=0.7)
    inputs = network_inputs(data, policy, 1, rng)
    rate = 1e-3
    start, end = (
        train_networks(estimator, functions, gd.PrimalDual(1, step, 4, record_every=1), inputs, [3])[1].players
        for step in (1e-30, rate)
    )

    def network(layers, x):
        (w1, b1), (w2, b2) = layers
        return (
            np.maximum(x @ w1[0].astype(float) + b1[0].astype(float), 0) @ w2[0].astype(float) + b2[0].astype(float)
        )[..., 0]

    def objective(players, eta):
        from gradientdice.estimators.terms import Terms

        raw = network(players[0], inputs.current)
        f, f_next, f_initial = (
            network(players[1], x) for x in (inputs.current, inputs.following[:, 0], inputs.initial[:, 0])
        )
        return float(np.mean(estimator.objective(Terms(estimator.ratio(raw), f, f_next, f_initial, eta))))

    sign = -1.0 if estimator.ratio_minimises else 1.0
    for player, direction in ((0, sign), (1, -sign)):
        for layer, part, entry in ((0, 0, (0, 0, 0)), (0, 0, (0, 2, 3)), (1, 0, (0, 1, 0)), (1, 1, (0, 0))):
            copies = [
                [
                    [(w.astype(float), b.astype(float)) for w, b in start.ratio],
                    [(w.astype(float), b.astype(float)) for w, b in start.critic],
                ]
                for _ in range(2)
            ]
            for moved, step in zip(copies, (1e-5, -1e-5), strict=True):
                moved[player][layer][part][entry] += step
            slope = (objective(copies[0], 0.0) - objective(copies[1], 0.0)) / 2e-5
            first = (start.ratio, start.critic)[player][layer][part][entry]
            expected = direction * slope - (estimator.ridge * first if player == 0 else 0.0)
            found = ((end.ratio, end.critic)[player][layer][part][entry] - first) / rate
            assert found == pytest.approx(expected, rel=2e-2, abs=2e-4)


@pytest.mark.parametrize(
    "estimator", [gd.GradientDICE(0.8), gd.GenDICE(0.8), gd.DualDICE(0.8, power=2.0), gd.GradientDICE(1.0)], ids=repr
)
def test_networks_find_the_value_of_a_small_mdp(estimator):
    mdp, target, data, policy = one_hot_log(4000)
    solver = gd.PrimalDual(4000, gd.Cosine(0.05, 4000), 128, average=0.99)
    estimate = gd.evaluate(data, policy, estimator, functions=gd.MLP((32,)), solver=solver)
    truth, behaviour = mdp.value(target, estimator.discount), data.rewards.mean()
    assert abs(estimate.value - truth) < 0.25 * abs(behaviour - truth) + 0.03
    assert estimate.interval is None and estimate.status is gd.Status.OK
    assert abs(estimate.diagnostics.mean_ratio_error) < 0.1


def test_the_doubly_robust_answer_covers_with_and_without_ends():
    from gradientdice.experiments.coverage.problems import problems

    problem = problems()["ending, random 6×2"]()
    log = problem.trajectories(4000, np.random.default_rng(1))
    eye = np.eye(problem.terminal)
    data = gd.Transitions(
        eye[log.states],
        log.actions,
        log.rewards,
        eye[log.next_states],
        terminated=log.terminated,
        episodes=log.episodes,
    )
    policy = gd.DiscretePolicy(lambda s: problem.target[s.argmax(axis=1)], 2)
    from gradientdice.inference.neural import default_solver, neural_doubly_robust
    from gradientdice.solvers.neural.fitted_q import FittedQ

    for discount in (0.9, 1.0):
        answer = neural_doubly_robust(
            data,
            policy,
            gd.GradientDICE(discount),
            gd.MLP((32,)),
            solver=default_solver(2000),
            fitted_q=FittedQ(2000),
            members=2,
        )
        error = np.sqrt(np.sum(answer.shares.rows**2))
        assert abs(answer.value - problem.truth(discount)) < 5 * error
        assert abs(answer.mean_ratio - 1) < 0.2


def group(rates, steps=40, **options):
    _, _, data, policy = one_hot_log(300)
    inputs = network_inputs(data, policy, 1, np.random.default_rng(0))
    estimators = [gd.GradientDICE(0.9)] * len(rates)
    solvers = [gd.PrimalDual(steps, rate, 16, record_every=4, **options) for rate in rates]
    plans = [s.neural_plan(e, gd.MLP((8,)), with_ridge=False) for s, e in zip(solvers, estimators, strict=True)]
    return NeuralGroup(
        plans[0], NeuralData.create(inputs, 0.9), hyper_parameters(estimators, [p.schedule for p in plans])
    )


def same(left, right):
    import jax

    return all(
        np.array_equal(a, b, equal_nan=True) for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    )


def test_a_member_that_diverges_does_not_spoil_the_others():
    (alone,) = run_neural([group([0.01])], [0, 1])
    (both,) = run_neural([group([0.01, 1e12])], [0, 1])
    assert (both.diverged_at[0] == -1).all() and (both.diverged_at[1] >= 0).all()
    assert np.array_equal(alone.curve[0], both.curve[0])
    assert np.isinf(both.curve[1, :, -1]).all()
    import jax

    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(both.players)), (
        "the last finite parameters are given"
    )


def test_a_grid_in_small_parts_is_the_same_grid():
    whole, parts = (run_neural([group([0.01, 0.02, 0.03])], range(3), max_bytes=size)[0] for size in (None, 1))
    assert same(whole, parts)


def test_a_run_that_stops_goes_on_bit_for_bit(tmp_path):
    options = {"optimizer": optax.adam(1.0), "average": 0.9, "target_rate": 0.1, "clip_norm": 1.0}
    (whole,) = run_neural([group([0.01], **options)], [5])
    calls = []

    def stop(blocks, values):
        calls.append(blocks)
        if len(calls) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_neural([group([0.01], **options)], [5], checkpoint=tmp_path, watch=stop)
    done = []
    (again,) = run_neural(
        [group([0.01], **options)], [5], checkpoint=tmp_path, watch=lambda blocks, values: done.append(blocks)
    )
    assert 0 < len(done) < 10, "it did not start anew"
    assert same(whole, again)


CHILD = """
import sys; sys.path.insert(0, {tests!r})
from pathlib import Path
from test_neural import group
from gradientdice.solvers.neural.grid import run_neural
import time
run_neural([group([0.01], steps=4000)], [1], checkpoint=Path(sys.argv[1]), watch=lambda b, v: time.sleep(0.2))
"""


def test_a_killed_process_goes_on_bit_for_bit(tmp_path):
    (whole,) = run_neural([group([0.01], steps=4000)], [1])
    code = CHILD.format(tests=os.path.dirname(__file__))
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    deadline = time.time() + 120
    while not list(tmp_path.glob("*.safetensors")) and time.time() < deadline:
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert list(tmp_path.glob("*.safetensors")), "the child wrote a checkpoint before it was killed"
    (again,) = run_neural([group([0.01], steps=4000)], [1], checkpoint=tmp_path)
    assert same(whole, again)


def test_checkpoints_are_refused_clearly(tmp_path, monkeypatch):
    path = tmp_path / "state.safetensors"
    save_checkpoint(path, {"a": np.arange(3)}, {"run": 1})
    assert np.array_equal(load_checkpoint(path, {"run": 1})["a"], np.arange(3))
    assert load_checkpoint(tmp_path / "none.safetensors", {}) is None
    with pytest.raises(gd.InputError, match="other settings"):
        load_checkpoint(path, {"run": 2})

    def full(*arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("gradientdice.solvers.checkpoint._write_all", full)
        with pytest.raises(gd.InputError, match="No space left.*still there"):
            save_checkpoint(path, {"a": np.arange(4)}, {"run": 1})
    assert len(load_checkpoint(path, {"run": 1})["a"]) == 3, "the last good one stays"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(gd.InputError, match="not a whole checkpoint"):
        load_checkpoint(path, {"run": 1})


DEVICES = """
import sys; sys.path.insert(0, {tests!r})
import numpy as np, jax
from test_neural import group
from gradientdice.solvers.neural.grid import run_neural
assert len(jax.devices()) == 3
(outcome,) = run_neural([group([0.01, 0.02])], [0, 1])
np.save(sys.argv[1], outcome.curve)
"""


def test_several_devices_share_a_sweep(tmp_path):
    (one,) = run_neural([group([0.01, 0.02])], [0, 1])
    code = DEVICES.format(tests=os.path.dirname(__file__))
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=3"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "curve.npy")], env=environment, check=True)
    assert np.allclose(np.load(tmp_path / "curve.npy"), one.curve, rtol=1e-4, atol=1e-5)


def test_the_sweep_takes_networks_and_says_where_the_mean_ratio_starts():
    _, _, data, policy = one_hot_log(300)
    solver = gd.PrimalDual(20, 0.01, 16, record_every=10)
    table = gd.sweep(
        data,
        policy,
        [gd.GradientDICE(0.5), gd.DualDICE(0.5)],
        [gd.MLP.paper(), gd.MLP((8,))],
        solver,
        seeds=2,
        progress=False,
    )
    assert len(table) == 2 * 2 * 2 * 3 and np.isfinite(table["value"]).all()
    first = table[table["step"] == 0].groupby("functions")["mean_ratio"].mean()
    assert abs(first[repr(gd.MLP.paper())]) < 0.01
    assert abs(first[repr(gd.MLP((8,)))] - 1) < 0.5


def test_evaluate_and_sweep_go_on_from_a_checkpoint(tmp_path):
    _, _, data, policy = one_hot_log(200)
    solver = gd.PrimalDual(20, 0.01, 16, record_every=10)
    for call in (
        lambda **more: (
            gd.evaluate(data, policy, gd.GradientDICE(0.5), functions=gd.MLP((8,)), solver=solver, **more).value
        ),
        lambda **more: gd.sweep(
            data, policy, gd.GradientDICE(0.5), gd.MLP((8,)), solver, seeds=2, progress=False, **more
        )["value"].tolist(),
    ):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        plain, first = call(), call(checkpoint=folder)
        written = {path: path.read_bytes() for path in folder.rglob("*.safetensors")}
        assert written and call(checkpoint=folder) == first == plain
        assert {path: path.read_bytes() for path in folder.rglob("*.safetensors")} == written, "nothing was done again"


def test_predict_is_the_network():
    layers = [(np.array([[1.0], [-1.0]]), np.array([0.5])), (np.array([[2.0]]), np.array([1.0]))]
    assert predict(layers, np.array([[1.0, 0.0], [0.0, 3.0]])).tolist() == [4.0, 1.0]


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: gd.MLP(()), "hidden"),
        (lambda: gd.MLP([64]), "tuple"),
        (lambda: gd.MLP((0,)), "hidden"),
        (lambda: gd.MLP(draws=0), "draws"),
        (lambda: gd.PrimalDual(10, average=1.5), "average"),
        (lambda: gd.PrimalDual(10, clip_norm=0.0), "clip_norm"),
        (lambda: gd.PrimalDual(10, target_rate=2.0), "target_rate"),
        (lambda: gd.Cosine(0.1, 0), "steps"),
    ],
)
def test_bad_settings_are_refused(build, words):
    with pytest.raises(gd.InputError, match=words):
        build()


def test_bad_combinations_are_refused():
    mdp, target, data, policy = one_hot_log(100)
    with pytest.raises(gd.InputError, match="linear functions"):
        gd.evaluate(data, policy, discount=0.9, functions=gd.MLP(), solver=gd.ClosedForm())
    with pytest.raises(gd.InputError, match="for networks"):
        gd.evaluate(
            data,
            policy,
            discount=0.9,
            functions=gd.LinearFeatures(lambda s, a: s),
            solver=gd.PrimalDual(10, optimizer=optax.adam(1.0)),
        )
    bare = gd.Transitions(data.states, data.actions, data.rewards, data.next_states)
    with pytest.raises(gd.InputError, match="initial states"):
        gd.evaluate(bare, policy, discount=0.9, functions=gd.MLP(), solver=gd.PrimalDual(10))
