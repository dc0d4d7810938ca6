"""The compiled learner against an independent NumPy loop over the same samples, and its failure modes."""

from typing import Any

import numpy as np
import optax
import pytest

import gradientdice as gd
from dice.stochastic.small import boyan_source, one_hot_log, table_log
from gradientdice.dice.stochastic.functions import LinearClass
from gradientdice.dice.stochastic.learner import replay
from problems import known
from reference import learners

LEARNERS = [
    (gd.GradientDICE(0.7, 0.8, 0.05), learners.gradient_dice),
    (gd.GenDICE(0.7, 0.8, 0.05), learners.gen_dice_square),
    (gd.DualDICE(0.7, ridge=0.05), learners.dual_dice_cubic),
]


@pytest.mark.parametrize(("estimator", "by_hand"), LEARNERS)
@pytest.mark.parametrize("representation", ["tabular", "linear", "dense"])
def test_equals_an_independent_loop(estimator, by_hand, representation):
    rng = np.random.default_rng(0)
    features = {
        "tabular": None,
        "linear": gd.mdp.pair_features(gd.mdp.boyan_features(), 2),
        "dense": rng.normal(size=(26, 3)) / 2,
    }[representation]
    x = np.eye(26) if features is None else features
    source, recorder, truth = boyan_source(features)
    solver = gd.PrimalDual(700, 0.05, 1, 100, gd.ConstantInit(0.9, 0.1))
    solution = solver.solve(estimator, source, recorder, seed=3)
    drawn = np.asarray(replay(solver.plan(estimator, LinearClass(x.shape[1])), source, 3))
    w, kappa, eta = np.full(x.shape[1], 0.9), np.full(x.shape[1], 0.1), 0.0
    for pair, following, initial in drawn:
        w, kappa, eta = by_hand(
            x[pair], x[following], x[initial], w, kappa, eta, 0.7, getattr(estimator, "norm_penalty", 0.0), 0.05, 0.05
        )
    np.testing.assert_allclose(solution.ratio_params, w, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(solution.critic_params, kappa, rtol=1e-3, atol=1e-4)
    assert solution.norm_multiplier == pytest.approx(eta, abs=1e-4)
    error = np.mean((np.asarray(estimator.ratio(x @ w)) - truth) ** 2)
    curve = known(solution.curve)
    assert curve.values[-1] == pytest.approx(error, rel=2e-3)
    np.testing.assert_array_equal(curve.steps, np.arange(100, 701, 100))


def test_divergence_is_a_status_with_the_last_finite_iterates():
    source, recorder, _ = boyan_source(None)
    solution = gd.PrimalDual(3000, 20.0, 1, 10).solve(gd.GradientDICE(0.7), source, recorder)
    assert solution.status is gd.Status.DIVERGED and "learning rate" in solution.status.message
    assert np.isfinite(solution.ratio_params).all() and np.isfinite(solution.critic_params).all()
    curve = known(solution.curve)
    assert np.isinf(curve.values[-1]) and not np.isnan(curve.values).any()
    assert 0 < solution.stats["diverged_at"] <= 3000


def test_the_same_seed_gives_the_same_bits():
    source, recorder, _ = boyan_source(None)
    solver = gd.PrimalDual(1000, 0.1)
    first, second, other = (solver.solve(gd.GenDICE(0.7), source, recorder, seed=seed) for seed in (5, 5, 6))
    assert (first.ratio_params == second.ratio_params).all()
    assert (first.ratio_params != other.ratio_params).any()


def test_batches_average_their_transitions():
    """A batch of many has far less noise: its curve ends near the deterministic one."""
    source, recorder, _ = boyan_source(None)
    exact = gd.PrimalDual(400, 0.2, batch_size=4096).solve(gd.GradientDICE(0.5), source, recorder, seed=0)
    again = gd.PrimalDual(400, 0.2, batch_size=4096).solve(gd.GradientDICE(0.5), source, recorder, seed=1)
    single = gd.PrimalDual(400, 0.2, batch_size=1).solve(gd.GradientDICE(0.5), source, recorder, seed=1)
    noise = np.abs(exact.ratio_params - again.ratio_params).mean()
    assert noise < 0.25 * np.abs(exact.ratio_params - single.ratio_params).mean()


def test_steps_need_not_be_a_multiple_of_the_records():
    source, recorder, _ = boyan_source(None)
    solution = gd.PrimalDual(250, 0.1, record_every=100).solve(gd.GradientDICE(0.5), source, recorder)
    curve = known(solution.curve)
    np.testing.assert_array_equal(curve.steps, [100, 200, 250])
    assert np.isfinite(curve.values).all()


def test_the_curve_ends_at_the_fit_and_the_fit_near_the_closed_form():
    """With Adam and averaged iterates, too, a table's answer is that of the closed form."""
    data, policy = table_log(2000)
    exact = gd.evaluate(data, policy, gd.GradientDICE(0.8)).value
    for options in ({}, {"optimizer": optax.adam(1.0, b1=0.0), "average": 0.99, "clip_norm": 10.0}):
        solver = gd.PrimalDual(4000, gd.Cosine(0.05 if options else 0.5, 4000), 64, **options)
        fit = solver.fit(gd.GradientDICE(0.8), gd.Problem(data, policy, gd.Tabular(5, 2)))
        assert fit.value == pytest.approx(exact, abs=0.05) and fit.mean_ratio == pytest.approx(1, abs=0.05)
        assert known(fit.solution.curve).values[-1] == pytest.approx(fit.value, rel=1e-5)
        assert np.mean(fit.ratio * data.rewards) == pytest.approx(fit.value, rel=1e-6)


@pytest.mark.parametrize(
    "arguments",
    [
        {"steps": 0},
        {"steps": 10.5},
        {"steps": 10, "learning_rate": 0.0},
        {"steps": 10, "learning_rate": float("nan")},
        {"steps": 10, "batch_size": 0},
        {"steps": 10, "record_every": -1},
        {"steps": 10, "average": 1.5},
        {"steps": 10, "clip_norm": 0.0},
        {"steps": 10, "target_rate": 2.0},
    ],
)
def test_bad_options_are_refused(arguments):
    with pytest.raises(gd.InputError, match=list(arguments)[-1].replace("learning_rate", "rate")):
        gd.PrimalDual(**arguments)


def test_a_schedule_needs_an_end():
    with pytest.raises(gd.InputError, match="steps"):
        gd.Cosine(0.1, 0)


def test_a_hard_constraint_is_for_the_closed_form():
    source, recorder, _ = boyan_source(None)
    with pytest.raises(gd.InputError, match="ClosedForm"):
        gd.PrimalDual(10).solve(gd.GradientDICE(0.9, norm_penalty=np.inf), source, recorder)


def test_initial_weights_are_not_for_networks():
    _, _, data, policy = one_hot_log(100)
    solver = gd.PrimalDual(10, init=gd.ConstantInit(1.0, 0.0))
    with pytest.raises(gd.InputError, match=r"init=ConstantInit.*ratio_start"):
        gd.evaluate(data, policy, gd.GradientDICE(0.9), functions=gd.MLP((8,)), solver=solver)


def test_seeds_that_are_none_are_refused():
    source, recorder, _ = boyan_source(None)
    wrong: list[Any] = [-1, 2**32, 1.5]
    for seed in wrong:
        with pytest.raises(gd.InputError, match="(?i)seeds"):
            gd.PrimalDual(10).solve(gd.GradientDICE(0.9), source, recorder, seed=seed)
