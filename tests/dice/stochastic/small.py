"""Small logs and groups that the tests of the learner share, some of them with child processes."""

import jax
import numpy as np

import gradientdice as gd
from conftest import TARGET, UNIFORM, random_problem
from gradientdice.dice.stochastic.primal_dual import case_numbers
from gradientdice.dice.stochastic.setup import RatioError, log_setup
from gradientdice.dice.stochastic.sources import MDPSource
from gradientdice.dice.stochastic.training import Group


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


def table_log(n=600):
    """A log of five states and two actions, and its policy."""
    mdp, target, data_dist = random_problem(0)
    return mdp.sample(n, data_dist, np.random.default_rng(0)), gd.TabularPolicy(target)


def boyan_source(features, discount=0.7):
    """Boyan's chain as a source, a recorder of MSE(τ), and the true ratio."""
    mdp = gd.mdp.boyan_chain("episodic")
    truth = mdp.ratio(TARGET, discount, UNIFORM).ravel()
    return MDPSource.create(mdp, TARGET, UNIFORM, features), RatioError.create(features, truth), truth


def group(kind, rates, steps=40, record_every=4, **options):
    """GradientDICE at several learning rates, with a table or with networks."""
    if kind == "table":
        problem = gd.Problem(*table_log(300), gd.Tabular(5, 2))
    else:
        _, _, data, policy = one_hot_log(300)
        problem = gd.Problem(data, policy, gd.MLP((8,)))
    setup = log_setup(problem, 0.9)
    cases = [(gd.GradientDICE(0.9), gd.PrimalDual(steps, rate, 16, record_every, **options)) for rate in rates]
    plan = cases[0][1].plan(cases[0][0], setup.functions)
    return Group(plan, setup.source, setup.recorder, case_numbers(cases))


def same(left, right):
    """Whether two trees have the same bits."""
    return all(
        np.array_equal(a, b, equal_nan=True) for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    )
