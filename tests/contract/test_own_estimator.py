"""Classes that a user writes in a notebook: they work through the protocol alone, without a registry."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import gradientdice as gd
from problems import by_estimator, known, random_problem


@pytest.fixture
def log():
    mdp, target, data_dist = random_problem(0)
    return mdp, gd.TabularPolicy(target), mdp.sample(3000, data_dist, np.random.default_rng(0))


class LoggedMean:
    """The log's own mean reward, with its error: nothing inherited, nothing registered."""

    discount = 0.5

    def __repr__(self):
        return "LoggedMean()"

    def answer(self, problem, solver=None):
        data = problem.data
        centred = data.rewards - data.rewards.mean()
        influence = gd.Influence(centred / len(data), None, np.ones(len(data)), centred)
        return gd.Answer(value=float(data.rewards.mean()), influence=influence, ratio=np.ones(len(data)),
                         evidence=gd.Evidence(mean_ratio=1.0))  # fmt: skip


def test_an_answer_of_ones_own(log):
    _, policy, data = log
    estimate = gd.evaluate(data, policy, LoggedMean())
    assert estimate.value == pytest.approx(data.rewards.mean()) and estimate.estimator == "LoggedMean()"
    assert estimate.standard_error == pytest.approx(data.rewards.std(ddof=1) / np.sqrt(len(data)))
    table = gd.compare(data, policy, [gd.GradientDICE(0.5), LoggedMean()])
    row = table[table["estimator"] == "LoggedMean()"].iloc[0]
    assert (row["value"], row["low"], row["high"]) == (estimate.value, *known(estimate.interval)) and row[
        "choice"
    ] == ""


@dataclass(frozen=True)
class Plain:
    """GradientDICE's objective, with nothing inherited and no `answer`."""

    discount: float
    ridge: float = 0.0
    norm_penalty: float = 1.0

    ratio_minimises: ClassVar[bool] = True

    def ratio(self, raw: Any) -> Any:
        return raw

    def objective(self, terms: Any) -> Any:
        tau, f, f_next, f_initial, eta = terms
        flow = (1 - self.discount) * f_initial + self.discount * tau * f_next - tau * f - 0.5 * f**2
        return flow + self.norm_penalty * (eta * tau - eta - 0.5 * eta**2)


class Solved(Plain):
    """The same with a closed form."""

    def least_squares(self, m):
        return gd.GradientDICE(self.discount).least_squares(m)

    def critic(self, m, ratio_params):
        return gd.GradientDICE(self.discount).critic(m, ratio_params)

    def adjoint(self, m, inverse, reward, critic, norm_multiplier):
        return gd.GradientDICE(self.discount).adjoint(m, inverse, reward, critic, norm_multiplier)


class Bare:
    """A plain class, no dataclass."""

    ratio_minimises, ridge = True, 0.0

    def __init__(self, discount):
        self.discount = discount

    def ratio(self, raw):
        return raw

    def objective(self, terms):
        return Plain(self.discount).objective(terms)


def test_a_saddle_objective_of_ones_own_in_closed_form(log):
    _, policy, data = log
    own, given = gd.evaluate(data, policy, Solved(0.8)), gd.evaluate(data, policy, gd.GradientDICE(0.8))
    assert (own.value, own.interval) == (given.value, given.interval)
    table = gd.compare(data, policy, [Solved(0.8), gd.GradientDICE(0.8)])
    rows = by_estimator(table)
    assert rows[repr(Solved(0.8))]["bellman_loss"] == rows[repr(gd.GradientDICE(0.8))]["bellman_loss"]


def test_without_a_closed_form_it_is_refused_with_what_would_work(log):
    _, policy, data = log
    with pytest.raises(gd.InputError, match="Plain has no closed form.*use PrimalDual"):
        gd.evaluate(data, policy, Plain(0.8))


@pytest.mark.parametrize(
    "own",
    [pytest.param(Plain(0.5), marks=pytest.mark.slow), pytest.param(Solved(0.5), marks=pytest.mark.slow), Bare(0.5)],
    ids=["dataclass", "closed form", "plain class"],
)
def test_a_saddle_objective_of_ones_own_is_learned(own, log):
    _, policy, data = log
    solver = gd.PrimalDual(500, 0.05, batch_size=4)
    mine, given = (
        gd.evaluate(data, policy, estimator, functions=gd.Tabular(5, 2), solver=solver)
        for estimator in (own, gd.GradientDICE(0.5))
    )
    assert mine.value == pytest.approx(given.value, rel=1e-5)
    tables = [gd.sweep(data, policy, estimator, gd.Tabular(5, 2), solver, seeds=2, progress=False)
              for estimator in (own, gd.GradientDICE(0.5))]  # fmt: skip
    np.testing.assert_allclose(tables[0]["value"], tables[1]["value"], rtol=1e-5)
    assert set(tables[0]["estimator"]) == {type(own).__name__}


@pytest.mark.slow
def test_networks_learn_a_saddle_objective_of_ones_own(log):
    _, policy, data = log
    solver = gd.PrimalDual(500, 0.05, batch_size=4)
    own: Any = Bare(0.5)
    mine, given = (
        gd.evaluate(data, policy, estimator, functions=gd.MLP((8,)), solver=solver).value
        for estimator in (own, gd.GradientDICE(0.5))
    )
    assert mine == pytest.approx(given, rel=1e-5)


class Mixed(gd.SaddleEstimator, Plain):
    """With the mixin, which is where `answer` comes from in the library."""


def test_the_mixin(log):
    _, policy, data = log
    solver = gd.PrimalDual(300, 0.05, batch_size=4)
    values = [gd.evaluate(data, policy, kind(0.5), functions=gd.Tabular(5, 2), solver=solver).value
              for kind in (Mixed, Plain)]  # fmt: skip
    assert values[0] == values[1]


def test_something_else_is_refused(log):
    _, policy, data = log
    neither: Any = object()
    with pytest.raises(gd.InputError, match=r"discount and answer\(problem, solver\)"):
        gd.evaluate(data, policy, neither)
