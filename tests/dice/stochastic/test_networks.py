"""Networks: answers against exact values, and what is refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gradientdice as gd
from dice.stochastic.small import one_hot_log
from gradientdice.dice.stochastic.fitted_q import FittedQ
from gradientdice.dice.stochastic.functions import predict
from gradientdice.estimators.doubly_robust.networks import default_solver, neural_doubly_robust
from gradientdice_studies.coverage.problems import problems
from problems import known

WRONG: Any = [64]


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "estimator",
    [
        gd.GradientDICE(0.8),
        pytest.param(gd.GenDICE(0.8), marks=SLOW),
        pytest.param(gd.DualDICE(0.8, power=2.0), marks=SLOW),
        gd.GradientDICE(1.0),
    ],
    ids=repr,
)
def test_networks_find_the_value_of_a_small_mdp(estimator):
    mdp, target, data, policy = one_hot_log(4000)
    solver = gd.PrimalDual(4000, gd.Cosine(0.05, 4000), 128, average=0.99)
    estimate = gd.evaluate(data, policy, estimator, functions=gd.MLP((32,)), solver=solver)
    truth, behaviour = mdp.value(target, estimator.discount), data.rewards.mean()
    assert abs(estimate.value - truth) < 0.25 * abs(behaviour - truth) + 0.03
    assert estimate.interval is None and estimate.status is gd.Status.OK
    assert abs(known(estimate.diagnostics).mean_ratio_error) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("discount", [0.9, pytest.param(1.0, marks=pytest.mark.slow)])
def test_the_doubly_robust_answer_covers_with_ends(discount):
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
    answer = neural_doubly_robust(
        gd.Problem(data, policy, gd.MLP((32,))),
        gd.GradientDICE(discount),
        solver=default_solver(2000),
        fitted_q=FittedQ(2000),
        members=2,
    )
    error = np.sqrt(np.sum(known(answer.influence).rows ** 2))
    assert abs(answer.value - problem.truth(discount)) < 5 * error
    assert abs(known(answer.evidence.mean_ratio) - 1) < 0.2


def test_predict_is_the_network():
    layers = [(np.array([[1.0], [-1.0]]), np.array([0.5])), (np.array([[2.0]]), np.array([1.0]))]
    assert predict(layers, np.array([[1.0, 0.0], [0.0, 3.0]])).tolist() == [4.0, 1.0]


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: gd.MLP(()), "hidden"),
        (lambda: gd.MLP(WRONG), "tuple"),
        (lambda: gd.MLP((0,)), "hidden"),
        (lambda: gd.MLP(draws=0), "draws"),
    ],
)
def test_bad_settings_are_refused(build, words):
    with pytest.raises(gd.InputError, match=words):
        build()


def test_bad_combinations_are_refused():
    _, _, data, policy = one_hot_log(100)
    with pytest.raises(gd.InputError, match="Networks are not linear"):
        gd.evaluate(data, policy, discount=0.9, functions=gd.MLP(), solver=gd.ClosedForm())
    bare = gd.Transitions(data.states, data.actions, data.rewards, data.next_states)
    with pytest.raises(gd.InputError, match="initial states"):
        gd.evaluate(bare, policy, discount=0.9, functions=gd.MLP(), solver=gd.PrimalDual(10))


def test_at_discount_1_a_constant_in_the_rewards_is_one_in_the_doubly_robust_value():
    _, _, data, policy = one_hot_log(400)
    values = []
    for log in (data, replace(data, rewards=data.rewards + 1e6)):
        problem, training = gd.Problem(log, policy, gd.MLP((16,))), FittedQ(300, bounded=True)
        answer = neural_doubly_robust(
            problem, gd.GradientDICE(1.0), solver=default_solver(300), fitted_q=training, members=1
        )
        values.append(answer.value)
        assert any("too few" in note for note in answer.notes)
    assert values[1] - 1e6 == pytest.approx(values[0], abs=1e-3)
