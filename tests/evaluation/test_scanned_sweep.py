"""Training on a scanned log: the same bits by seed and after an interruption, the same as from memory, near the truth."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.dice.stochastic import training
from gradientdice.dice.stochastic.setup import scanned_setup
from gradientdice.log.scanning.shuffled import ShuffledRows
from problems import known

FUNCTIONS = {
    "linear": gd.LinearFeatures(lambda states, actions: np.column_stack([states[:, 0], actions])),
    "network": gd.MLP(hidden=(8,)),
}
GROUP = 100


def ended_log(rows: int = 900) -> tuple[gd.Transitions, gd.DiscretePolicy]:
    """A walk in one dimension; one row in ten ends its episode."""
    rng = np.random.default_rng(1)
    states = rng.normal(size=(rows, 1))
    actions = rng.integers(0, 2, rows)
    following = 0.5 * states + 0.3 * actions[:, None] + 0.1 * rng.normal(size=states.shape)
    data = gd.Transitions(
        states, actions, states[:, 0] + actions, following, initial_states=rng.normal(size=(40, 1)),
        terminated=rng.random(rows) < 0.1,
    )  # fmt: skip
    return data, gd.DiscretePolicy(lambda own: np.tile([0.3, 0.7], (len(own), 1)), 2)


@pytest.fixture
def log(tmp_path) -> gd.ScannedLog:
    import pyarrow.parquet as pq

    data, _ = ended_log()
    data.save(tmp_path / "whole.parquet")
    pq.write_table(pq.read_table(tmp_path / "whole.parquet"), tmp_path / "log.parquet", row_group_size=GROUP)
    return gd.scan(tmp_path / "log.parquet")


def swept(data, functions, discount, **options):
    _, policy = ended_log(2)
    solver = gd.PrimalDual(35, 0.05, batch_size=16, record_every=10)
    table = gd.sweep(data, policy, gd.GradientDICE(discount), functions, solver, seeds=2, **options)
    return table[["value", "mean_ratio"]].to_numpy()


class Interrupted(Exception):
    pass


@pytest.mark.parametrize(
    ("name", "discount"),
    [("linear", 0.9), *(pytest.param(name, 1.0, marks=pytest.mark.slow) for name in FUNCTIONS)],
)
def test_same_bits_after_a_kill_and_from_memory(log, tmp_path, monkeypatch, name, discount):
    functions = FUNCTIONS[name]
    of_scan = ShuffledRows.of_scan
    monkeypatch.setattr(ShuffledRows, "of_scan", lambda log: of_scan(log, 0, 250))
    whole = swept(log, functions, discount)
    first, second = np.split(whole, 2)
    assert np.isfinite(whole).all() and not np.array_equal(first, second)
    # Killed in the middle of an epoch, after the second block.
    original, saved = training._File.save, []

    def failing(self, done, curve, state):
        original(self, done, curve, state)
        saved.append(done)
        if done == 2:
            raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(training._File, "save", failing)
        with pytest.raises(Interrupted):
            swept(log, functions, discount, checkpoint=tmp_path / "runs")
    assert max(saved) == 2
    np.testing.assert_array_equal(swept(log, functions, discount, checkpoint=tmp_path / "runs"), whole)
    data, _ = ended_log()
    in_memory = ShuffledRows.of_memory(data, [GROUP] * 9, 0, 250)
    monkeypatch.setattr(ShuffledRows, "of_scan", lambda log: in_memory)
    np.testing.assert_array_equal(swept(log, functions, discount), whole)


def test_training_comes_to_the_closed_form(log):
    _, policy = ended_log(2)
    functions, estimator = FUNCTIONS["linear"], gd.GradientDICE(0.5)
    truth = gd.evaluate(log, policy, estimator, functions=functions).value
    solver = gd.PrimalDual(2000, 0.05, batch_size=32, average=0.995, record_every=500)
    table = gd.sweep(log, policy, estimator, functions, solver, seeds=1)
    assert table["value"].iloc[-1] == pytest.approx(truth, abs=0.02)
    # A ratio of 1 everywhere is far off.
    assert abs(log.sample.rewards.mean() - truth) > 0.1


@pytest.mark.parametrize("name", ["linear", pytest.param("network", marks=pytest.mark.slow)])
def test_an_answer_is_that_over_every_row(log, tmp_path, name):
    data, policy = ended_log()
    functions, solver = FUNCTIONS[name], gd.PrimalDual(200, 0.05, batch_size=16, record_every=100)
    first = gd.evaluate(log, policy, gd.GradientDICE(0.9), functions=functions, solver=solver, checkpoint=tmp_path)
    again = gd.evaluate(log, policy, gd.GradientDICE(0.9), functions=functions, solver=solver, checkpoint=tmp_path)
    assert first.value == again.value and first.interval is None and first.num_rows == len(data)
    # The sample is the whole log here, so that the last point of the curve is the value in single precision.
    curve = known(known(first.solution).curve)
    assert first.value == pytest.approx(curve.values[-1], rel=1e-4)
    other = gd.evaluate(log, policy, gd.GradientDICE(0.9), functions=functions, solver=solver, seed=1)
    assert other.value != first.value
    if name == "linear":
        rows = np.column_stack([np.ones(900), data.states[:, 0], data.actions, np.zeros(900)])
        ratio = rows @ known(first.solution).ratio_params
        assert first.value == pytest.approx(0.9 * np.mean(ratio * data.rewards), rel=1e-6)
        assert 1 + known(first.diagnostics).mean_ratio_error == pytest.approx(
            0.9 * ratio.mean() + 0.1 * known(first.solution).ratio_params[-1], rel=1e-6
        )


def test_what_a_scanned_log_cannot_train_is_refused(log, tmp_path, monkeypatch):
    _, policy = ended_log(2)
    solver, estimator = gd.PrimalDual(10), gd.GradientDICE(0.9)
    with pytest.raises(gd.InputError, match="solves it from counts"):
        gd.sweep(log, policy, estimator, gd.Tabular(2, 2), solver)
    with pytest.raises(gd.InputError, match="choose a larger batch_size or record_every"):
        gd.sweep(log, policy, estimator, FUNCTIONS["linear"], gd.PrimalDual(10, batch_size=1, record_every=1))
    weighted = gd.ScannedLog(log.parts, {**log.columns, "weights": "rewards"})
    with pytest.raises(gd.InputError, match="columns={'weights': None}"):
        gd.sweep(weighted, policy, estimator, FUNCTIONS["linear"], solver)
    startless = gd.ScannedLog(log.parts, {k: v for k, v in log.columns.items() if k != "initial_states"})
    with pytest.raises(gd.InputError, match="initial"):
        gd.sweep(startless, policy, estimator, FUNCTIONS["linear"], solver)
    with monkeypatch.context() as patch, pytest.raises(gd.InputError, match="needs functions="):
        patch.setattr("gradientdice.log.scanning.log.SAMPLE_ROWS", 100)  # else the sample is the log, and is searched
        gd.evaluate(gd.scan(tmp_path / "log.parquet"), policy, estimator, solver=solver)
    with pytest.raises(gd.InputError, match=r"solver=PrimalDual"):
        gd.evaluate(log, policy, estimator, functions=gd.MLP())
    with pytest.raises(gd.InputError, match="interval= cannot be used"):
        gd.evaluate(log, policy, estimator, functions=FUNCTIONS["linear"], solver=solver, interval=gd.NormalInterval())
    with pytest.raises(gd.InputError, match="ProjectedPrimalDual needs the log in memory"):
        gd.evaluate(log, policy, estimator, functions=FUNCTIONS["linear"], solver=gd.ProjectedPrimalDual(10))
    logged = gd.LoggedPolicy(next_probabilities=np.full((900, 2), 0.5))
    with pytest.raises(gd.InputError, match="LoggedPolicy"):
        scanned_setup(log, logged, FUNCTIONS["linear"], 0.9)
