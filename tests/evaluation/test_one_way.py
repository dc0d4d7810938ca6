"""One way to an answer: `evaluate`, `compare` and solvers agree with each other."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice_studies.coverage.problems import problems
from problems import known, linear_system

ENDING = "ending, random 6×2"


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_the_pick_of_compare_is_the_answer_of_evaluate(seed):
    data, policy = linear_system(seed)
    estimate = gd.evaluate(data, policy, discount=0.99, effort="quick")
    estimators = [gd.GradientDICE(0.99), gd.LSTDQ(0.99), gd.DualDICE(0.99, power=2.0)]
    table = gd.compare(data, policy, estimators, effort="quick")
    pick = table[table["choice"] == "use this"].iloc[0]
    assert (pick["value"], pick["low"], pick["high"]) == (estimate.value, *known(estimate.interval))
    assert pick["verdict"] == str(estimate.verdict)
    # No other row that uses the searched functions is less careful.
    assert np.all(table["low"] <= known(estimate.interval)[0]) and np.all(table["high"] >= known(estimate.interval)[1])
    assert np.all(table["verdict"] != "")


def test_the_doubly_robust_row_of_a_table_has_a_verdict():
    mdp = gd.mdp.boyan_chain("episodic")
    data = mdp.sample(2000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
    policy = gd.TabularPolicy(np.tile([0.1, 0.9], (13, 1)))
    table = gd.compare(data, policy, [gd.GradientDICE(0.9)])
    row = table[table["estimator"].str.startswith("doubly robust")].iloc[0]
    same = gd.evaluate(data, policy, gd.DRL(0.9))
    assert (row["value"], row["low"], row["high"], row["verdict"]) == (
        same.value, *known(same.interval), str(same.verdict))  # fmt: skip


def ending_log(rows=600):
    problem = problems()[ENDING]()
    data = problem.trajectories(rows, np.random.default_rng(0))
    return data, gd.TabularPolicy(problem.target[: problem.terminal])


LEARNERS = [
    (gd.Tabular(6, 2), gd.PrimalDual(2000, 0.05)),
    (gd.Tabular(6, 2), gd.ProjectedPrimalDual(200)),
    (gd.MLP((8,)), gd.PrimalDual(50, 0.01, batch_size=32)),
    (gd.LinearFeatures(lambda s, a: np.column_stack([s, a])), gd.PrimalDual(200, 0.01)),
    (gd.LinearFeatures(lambda s, a: np.column_stack([s, a])), None),
]


@pytest.mark.parametrize(
    ("functions", "solver"), LEARNERS, ids=["table", "projected", "networks", "features", "closed form"]
)
@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_the_mean_of_ratio_times_reward_is_the_value(functions, solver, discount):
    """With every solver, also where episodes end and the absorbing state has a row of its own."""
    data, policy = ending_log()
    assert known(data.terminated).any()
    estimate = gd.evaluate(data, policy, gd.GradientDICE(discount), functions=functions, solver=solver)
    assert np.mean(estimate.ratio * data.rewards) == pytest.approx(estimate.value, rel=2e-5, abs=1e-6)


LINEAR = [gd.GradientDICE, gd.LSTDQ, gd.FQE, gd.MWL, gd.MQL, gd.RegularizedLagrangian]


@pytest.mark.parametrize("kind", LINEAR)
def test_every_linear_estimator_scales_its_ratio_alike(kind):
    data, policy = ending_log()
    weighted = replace(data, weights=np.random.default_rng(0).integers(1, 4, len(data)).astype(float))
    estimate = gd.evaluate(weighted, policy, kind(0.9))
    mean = np.average(estimate.ratio * data.rewards, weights=weighted.weights)
    assert mean == pytest.approx(estimate.value, rel=1e-8)


@pytest.mark.parametrize("kind", [*LINEAR, gd.GEM, gd.DiscountedCOPTD])
def test_a_row_of_weight_two_is_two_rows(kind):
    """The weight of the absorbing state's own row, too, depends on the total weight alone."""
    data, policy = ending_log(300)
    twice = np.random.default_rng(1).integers(1, 3, len(data))
    data = replace(data, episodes=None, initial_states=[0, 1, 2, 3, 4, 5], behavior_log_probs=np.full(len(data), -0.7))
    copied = gd.Transitions(
        np.repeat(data.states, twice),
        np.repeat(data.actions, twice),
        np.repeat(data.rewards, twice),
        np.repeat(data.next_states, twice),
        data.initial_states,
        terminated=np.repeat(known(data.terminated), twice),
        behavior_log_probs=np.full(twice.sum(), -0.7),
    )
    features = gd.LinearFeatures(lambda s, a: np.column_stack([s, s**2]), intercept=False)
    for functions in (None, features):
        values = [
            gd.evaluate(log, policy, kind(0.9), functions=functions).value
            for log in (replace(data, weights=twice.astype(float)), copied)
        ]
        assert values[0] == pytest.approx(values[1], rel=1e-9)


def test_the_rank_tolerance_is_the_function_classs():
    """The same nearly collinear features, as one's own and as a kernel's, lose different directions."""
    rng = np.random.default_rng(0)
    states = rng.normal(size=(400, 1))
    data = gd.Transitions(states, rng.integers(0, 2, 400), states[:, 0], states[::-1], initial_states=states[:5])
    policy = gd.DiscretePolicy(lambda s: np.full((len(s), 2), 0.5), 2)
    kernel = gd.RandomFourier(30, 2.0).fitted(data, policy)
    own = gd.LinearFeatures(lambda s, a: kernel.at(s, a).matrix(62), intercept=False)
    ranks = {
        (type(functions).__name__, repr(estimator)): known(
            gd.evaluate(data, policy, estimator, functions=functions).diagnostics
        ).rank
        for functions in (gd.RandomFourier(30, 2.0), own)
        for estimator in (gd.GradientDICE(0.9), gd.LSTDQ(0.9), gd.MWL(0.9), gd.MQL(0.9), gd.FQE(0.9))
    }
    kernel_ranks = {rank for (name, _), rank in ranks.items() if name == "RandomFourier"}
    own_ranks = {rank for (name, _), rank in ranks.items() if name == "LinearFeatures"}
    assert len(kernel_ranks) == len(own_ranks) == 1 and kernel_ranks.pop() < own_ranks.pop()
    chosen = gd.evaluate(data, policy, gd.GradientDICE(0.9), functions=own, solver=gd.ClosedForm(1e-7))
    assert {known(chosen.diagnostics).rank} == {rank for (name, _), rank in ranks.items() if name == "RandomFourier"}
