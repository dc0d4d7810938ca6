"""What every saddle estimator owes: the true ratio is its saddle point, and its closed form finds it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gradientdice as gd
from gradientdice_studies.hard_example.population import population_objective
from problems import made, random_problem

EVERY = sorted(name for name, kind in gd.ESTIMATORS.items() if kind.takes_solver)


CLOSED = [gd.GradientDICE(0.9), gd.GradientDICE(1.0), gd.GradientDICE(0.9, np.inf), gd.DualDICE(0.9, power=2.0)]


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("seed", range(3))
def test_the_true_ratio_is_a_saddle_point(name, seed):
    """At τ*, with the critic that answers it, every partial derivative of the population objective is zero."""
    mdp, target, data_dist = random_problem(seed)
    estimator = made(name, 0.8)
    truth = mdp.ratio(target, 0.8, data_dist).ravel()
    with jax.enable_x64(True):
        objective = population_objective(estimator, mdp, target, data_dist)
        raw = jnp.asarray(np.sqrt(truth) if name == "gen-dice" else truth)
        # GradientDICE and GenDICE answer the truth with f = 0; DualDICE with F*'(τ) = f − γE[f'].
        critic = np.zeros_like(truth)
        if name == "dual-dice":
            critic = np.linalg.solve(np.eye(len(truth)) - 0.8 * mdp.pair_chain(target), truth**2)
        gradients = jax.grad(objective, argnums=(0, 1, 2))(raw, jnp.asarray(critic), jnp.asarray(0.0))
    for part in gradients:
        np.testing.assert_allclose(part, 0, atol=1e-12)


@pytest.mark.parametrize("name", EVERY)
def test_stochastic_learning_goes_towards_the_truth(name):
    mdp, target, data_dist = random_problem(0)
    data = mdp.sample(4000, data_dist, np.random.default_rng(0))
    table = gd.sweep(
        data,
        gd.TabularPolicy(target),
        made(name, 0.3),
        gd.Tabular(5, 2),
        gd.PrimalDual(20_000, 0.02, init=gd.ConstantInit(0.5, 0.0)),
        seeds=4,
        progress=False,
    )
    truth = mdp.value(target, 0.3)
    first = table[table["step"] == table["step"].min()]["value"]
    last = table[table["step"] == table["step"].max()]["value"]
    assert set(table["status"]) == {"ok"}
    assert np.abs(last.mean() - truth) < 0.35 * np.abs(first.mean() - truth)


@pytest.mark.parametrize("estimator", CLOSED, ids=repr)
class TestClosedForm:
    def test_finds_the_ratio(self, estimator, problem):
        mdp, target, data_dist = problem
        solution = gd.solve(estimator, gd.Moments.exact(mdp, target, np.eye(10), data_dist))
        assert solution.status.ok
        np.testing.assert_allclose(
            solution.ratio_params, mdp.ratio(target, estimator.discount, data_dist).ravel(), atol=1e-10
        )

    def test_is_one_where_the_target_made_the_data(self, estimator, problem):
        mdp, target, _ = problem
        data_dist = mdp.occupancy(target, estimator.discount)
        solution = gd.solve(estimator, gd.Moments.exact(mdp, target, np.eye(10), data_dist))
        np.testing.assert_allclose(solution.ratio_params, 1, atol=1e-10)

    def test_does_not_depend_on_the_basis(self, estimator, problem, rng):
        """Any invertible mix of the features spans the same functions."""
        mdp, target, data_dist = problem
        x = rng.normal(size=(10, 5))
        mix = rng.normal(size=(5, 5))
        first = x @ gd.solve(estimator, gd.Moments.exact(mdp, target, x, data_dist)).ratio_params
        second = x @ mix @ gd.solve(estimator, gd.Moments.exact(mdp, target, x @ mix, data_dist)).ratio_params
        np.testing.assert_allclose(first, second, atol=1e-7)

    def test_permuted_and_duplicated_data_change_nothing(self, estimator, rng):
        mdp, target, data_dist = random_problem(6)
        data = mdp.sample(800, data_dist, rng)
        order = np.tile(rng.permutation(800), 2)
        again = gd.Transitions(
            data.states[order], data.actions[order], data.rewards[order], data.next_states[order], data.initial_states
        )
        policy, functions = gd.TabularPolicy(target), gd.Tabular(5, 2)
        first = gd.solve(estimator, gd.Moments.from_transitions(data, policy, functions))
        second = gd.solve(estimator, gd.Moments.from_transitions(again, policy, functions))
        np.testing.assert_allclose(first.ratio_params, second.ratio_params, atol=1e-10)

    def test_renamed_states_are_renamed_in_the_answer(self, estimator, problem, rng):
        mdp, target, data_dist = problem
        order = rng.permutation(5)
        renamed = gd.mdp.TabularMDP(mdp.transition[order][:, :, order], mdp.reward[order], mdp.initial[order])
        first = gd.solve(estimator, gd.Moments.exact(mdp, target, np.eye(10), data_dist)).ratio_params.reshape(5, 2)
        second = gd.solve(estimator, gd.Moments.exact(renamed, target[order], np.eye(10), data_dist[order]))
        np.testing.assert_allclose(first[order], second.ratio_params.reshape(5, 2), atol=1e-10)


@pytest.mark.parametrize(
    ("estimator", "instead"),
    [(gd.GenDICE(0.9), "GradientDICE or DualDICE"), (gd.DualDICE(0.9), "DualDICE.power=2. or PrimalDual")],
    ids=repr,
)
def test_a_closed_form_that_does_not_exist_is_refused_with_what_would_work(estimator: Any, instead):
    mdp, target, data_dist = random_problem(0)
    with pytest.raises(gd.InputError, match=f"use .*{instead}"):
        gd.solve(estimator, gd.Moments.exact(mdp, target, np.eye(10), data_dist))
