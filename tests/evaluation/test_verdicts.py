"""What `evaluate` says about an answer: verdicts that see gaps, misfits and other fixed points."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from problems import episodic_problem, known, made, population_log, random_problem

WITH_FUNCTIONS = ["lstdq", "fqe", "mwl", "mql", "regularized-lagrangian", "drl"]


@pytest.fixture(scope="module")
def log():
    mdp, target, _ = random_problem(0)
    return mdp, target, mdp.rollout(np.full((5, 2), 0.5), 200, 40, np.random.default_rng(1))


@pytest.mark.parametrize("name", [*WITH_FUNCTIONS, "dr", "wdr"])
def test_features_that_miss_something_reach_the_verdict(name):
    transition = np.zeros((20, 2, 20))
    for state in range(20):
        transition[state, 0, max(state - 1, 0)] = transition[state, 1, min(state + 1, 19)] = 1
    reward = np.tile(3 * np.sin(1.3 * np.arange(20))[:, None], (1, 2))
    mdp = gd.mdp.TabularMDP(0.9 * transition + 0.1 / 20, reward, np.eye(20)[0])
    data = mdp.rollout(np.full((20, 2), 0.5), 300, 50, np.random.default_rng(1))
    functions = gd.LinearFeatures(lambda s, a: np.column_stack([np.ones(len(s)), s / 20, a]))
    policy = gd.TabularPolicy(np.tile([0.3, 0.7], (20, 1)))
    estimate = gd.evaluate(data, policy, made(name, 0.9), functions=functions)
    assert known(estimate.diagnostics).bellman_misfit > 10 and str(estimate.verdict) == "do not trust"


def test_another_fixed_point_is_never_trusted(log):
    _, target, data = log
    policy = gd.TabularPolicy(target)
    for estimator, word in (
        (gd.DiscountedCOPTD(0.5), "log"),
        (gd.RegularizedLagrangian(0.9, critic_regularizer=1.0), "bias"),
        (gd.PDIS(0.95), "missing"),
        (gd.MAGIC(0.5), "no interval"),
    ):
        estimate = gd.evaluate(data, policy, estimator)
        assert str(estimate.verdict) != "trust" and any(word in reason for reason in estimate.reasons), estimator
    table = gd.compare(data, policy, [gd.GradientDICE(0.95), gd.PDIS(0.95)])
    assert "missing" in table.set_index("estimator").loc[repr(gd.PDIS(0.95)), "remarks"]


def test_long_episodes_are_not_thin_by_themselves(log):
    """With discount 0 only first steps count, and the target is as dense there as the behaviour allows."""
    _, target, _ = log
    mdp = log[0]
    data = mdp.rollout(np.full((5, 2), 0.5), 500, 60, np.random.default_rng(2))
    estimate = gd.evaluate(data, gd.TabularPolicy(target), gd.DR(0.0))
    assert known(estimate.diagnostics).thin_mass == 0


def test_endings_do_not_make_a_log_look_singular():
    """The absorbing state's own row has a tenth of all weight: a tiny one would give condition numbers of 1e13."""
    rng = np.random.default_rng(2)
    transition = rng.dirichlet(np.ones(6), size=(6, 2))
    transition[5], reward = np.eye(6)[5], rng.normal(size=(6, 2))
    reward[5] = 0
    mdp = gd.mdp.TabularMDP(transition, reward, np.append(rng.dirichlet(np.ones(5)), 0))
    data = mdp.rollout(np.full((6, 2), 0.5), 3000, 100, rng, terminal=5)
    policy = gd.TabularPolicy(np.full((5, 2), 0.5))
    for estimator, most in ((gd.GradientDICE(0.999), 1e3), (gd.LSTDQ(0.99), 1e6)):
        estimate = gd.evaluate(data, policy, estimator)
        assert estimate.status.ok and known(estimate.diagnostics).condition_number < most


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99])
def test_termination_alone_is_no_reason_for_distrust(discount):
    """Much of the target's mass is past the end, where no row is; the mean ratio counts it."""
    mdp, target, _ = episodic_problem(0)
    log = replace(population_log(mdp), weights=None)
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(log), size=5000, p=population_log(mdp).weights / known(population_log(mdp).weights).sum())
    data = gd.Transitions(
        log.states[chosen],
        log.actions[chosen],
        log.rewards[chosen],
        log.next_states[chosen],
        rng.choice(7, size=5000, p=mdp.initial),
        terminated=known(log.terminated)[chosen],
    )
    estimate = gd.evaluate(data, gd.TabularPolicy(target[:6]), discount=discount)
    assert abs(known(estimate.diagnostics).mean_ratio_error) < 1e-9
    assert estimate.verdict is gd.Verdict.TRUST
    assert abs(estimate.value - mdp.value(target, discount)) < 4 * known(estimate.standard_error)
