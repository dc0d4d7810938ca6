"""The compiled learner against an independent NumPy loop over the same samples, and its failure modes."""

import jax
import numpy as np
import pytest

import gradientdice as gd
from conftest import TARGET, UNIFORM, random_problem
from gradientdice.functions.design import whole_design
from gradientdice.solvers.recorders import RatioError
from gradientdice.solvers.sources import LogSource, MDPSource
from gradientdice.solvers.training import replay
from reference import learners

LEARNERS = [
    (gd.GradientDICE(0.7, 0.8, 0.05), learners.gradient_dice),
    (gd.GenDICE(0.7, 0.8, 0.05), learners.gen_dice_square),
    (gd.DualDICE(0.7, ridge=0.05), learners.dual_dice_cubic),
]


def boyan_source(features, discount=0.7):
    mdp = gd.mdp.boyan_chain("episodic")
    truth = mdp.ratio(TARGET, discount, UNIFORM).ravel()
    return MDPSource.create(mdp, TARGET, UNIFORM, features), RatioError.create(features, truth), truth


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
    drawn = np.asarray(replay(solver.plan(estimator, with_ridge=True), source, 3))
    w, kappa, eta = np.full(x.shape[1], 0.9), np.full(x.shape[1], 0.1), 0.0
    for pair, following, initial in drawn:
        w, kappa, eta = by_hand(
            x[pair], x[following], x[initial], w, kappa, eta, 0.7, getattr(estimator, "norm_penalty", 0.0), 0.05, 0.05
        )
    np.testing.assert_allclose(solution.ratio_params, w, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(solution.critic_params, kappa, rtol=1e-3, atol=1e-4)
    assert solution.norm_multiplier == pytest.approx(eta, abs=1e-4)
    error = np.mean((np.asarray(estimator.ratio(x @ w)) - truth) ** 2)
    assert solution.curve.values[-1] == pytest.approx(error, rel=2e-3)
    np.testing.assert_array_equal(solution.curve.steps, np.arange(100, 701, 100))


def test_draws_have_the_mdps_frequencies():
    mdp, target, data_dist = random_problem(2)
    source = MDPSource.create(mdp, target, data_dist, None)
    n = 200_000
    drawn = np.asarray(source.draw(jax.random.key(0), n))
    joint = np.zeros((10, 10))
    np.add.at(joint, (drawn[:, 0], drawn[:, 1]), 1 / n)
    expected = data_dist.ravel()[:, None] * mdp.pair_chain(target)
    np.testing.assert_allclose(joint, expected, atol=5 * np.sqrt(expected.max() / n))
    starts = np.bincount(drawn[:, 2], minlength=10) / n
    np.testing.assert_allclose(starts, (mdp.initial[:, None] * target).ravel(), atol=5 * np.sqrt(0.25 / n))


def test_a_log_is_drawn_by_weight_and_restarts_at_discount_1(rng):
    terminated = np.array([False, True, False, True])
    log = gd.Transitions(
        [0, 1, 0, 1],
        [0, 0, 0, 0],
        [1.0, 0, 0, 0],
        [1, 0, 1, 0],
        initial_states=[0],
        terminated=terminated,
        weights=[1, 2, 3, 4],
    )
    design = whole_design(log, gd.TabularPolicy(np.ones((2, 1))), gd.Tabular(2, 1), rng)
    discounted, average = LogSource.create(design, 0.9), LogSource.create(design, 1.0)
    drawn = average.draw(jax.random.key(0), 20_000)
    shares = np.bincount(np.asarray(drawn[:, 0]), minlength=4) / 20_000
    np.testing.assert_allclose(shares, [0.1, 0.2, 0.3, 0.4], atol=0.02)
    rows = np.array([[0, 0, 0], [1, 0, 0]])
    after = np.asarray(discounted.batch(rows).following.matrix(3).toarray())
    np.testing.assert_array_equal(after, [[0, 1, 0], [0, 0, 1]])  # the second went to the absorbing state
    again = np.asarray(average.batch(rows).following.matrix(3).toarray())
    np.testing.assert_array_equal(again, [[0, 1, 0], [1, 0, 0]])  # and here it restarted in state 0
    assert len(discounted.current) == 5 and len(average.current) == 4


def test_divergence_is_a_status_with_the_last_finite_iterates():
    source, recorder, _ = boyan_source(None)
    solution = gd.PrimalDual(3000, 20.0, 1, 10).solve(gd.GradientDICE(0.7), source, recorder)
    assert solution.status is gd.Status.DIVERGED and "learning rate" in solution.status.message
    assert np.isfinite(solution.ratio_params).all() and np.isfinite(solution.critic_params).all()
    assert np.isinf(solution.curve.values[-1]) and not np.isnan(solution.curve.values).any()
    assert 0 < solution.stats["diverged_at"] <= 3000


def test_a_diverging_run_does_not_touch_its_neighbours():
    mdp, target, data_dist = random_problem(0)
    data = mdp.sample(1000, data_dist, np.random.default_rng(0))
    arguments = (data, gd.TabularPolicy(target), [gd.GradientDICE(0.9)], gd.Tabular(5, 2))
    good, bad = gd.PrimalDual(500, 0.05), gd.PrimalDual(500, 50.0)
    alone = gd.sweep(*arguments, good, seeds=2, progress=False)
    both = gd.sweep(*arguments, [good, bad], seeds=2, progress=False)
    same = both[both["learning_rate"] == 0.05]
    np.testing.assert_allclose(same["value"], alone["value"], atol=1e-4)  # float32 sums, in another order
    assert (both[both["learning_rate"] == 50.0]["status"] == "diverged").all()
    assert not both["value"].isna().any()


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
    curve = gd.PrimalDual(250, 0.1, record_every=100).solve(gd.GradientDICE(0.5), source, recorder).curve
    np.testing.assert_array_equal(curve.steps, [100, 200, 250])
    assert np.isfinite(curve.values).all()


@pytest.mark.parametrize(
    "arguments",
    [
        {"steps": 0},
        {"steps": 10.5},
        {"steps": 10, "learning_rate": 0.0},
        {"steps": 10, "learning_rate": float("nan")},
        {"steps": 10, "batch_size": 0},
        {"steps": 10, "record_every": -1},
    ],
)
def test_bad_options_are_refused(arguments):
    with pytest.raises(gd.InputError):
        gd.PrimalDual(**arguments)


def test_a_hard_constraint_is_for_the_closed_form():
    source, recorder, _ = boyan_source(None)
    with pytest.raises(gd.InputError, match="ClosedForm"):
        gd.PrimalDual(10).solve(gd.GradientDICE(0.9, norm_penalty=np.inf), source, recorder)
