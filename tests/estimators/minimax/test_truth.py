"""MWL, MQL, FQE, the black-box estimator and the regularised Lagrangian: the truth, one another's answers, plain versions."""

from functools import cache

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.evaluation.evaluate import evaluate_problem
from gradientdice.evaluation.interval import Intervals
from problems import known
from reference import kernels
from reference.population import boyan, problem
from reference.single_transition import DISCOUNTED_ONLY, EVERY, MAIN, Lagrangian, cases, tolerance


class TestTruth:
    @pytest.mark.parametrize(("make", "discount"), cases(EVERY, [0.0, 0.5, 0.9, 1.0]))
    @pytest.mark.parametrize("ending", [False, True])
    @pytest.mark.parametrize("seed", range(3))
    def test_is_exact_on_the_population(self, make, discount, seed, ending):
        case = problem(seed, ending)
        answer = make(discount).answer(gd.Problem(case.log(), case.policy, gd.Tabular(4, 2), 0))
        assert answer.status.ok
        assert answer.value == pytest.approx(case.truth(discount), abs=tolerance(make))
        assert answer.evidence.mean_ratio == pytest.approx(1, abs=1e-8)
        weights = case.log().weights
        assert np.average(answer.ratio * case.log().rewards, weights=weights) == pytest.approx(answer.value, abs=1e-9)

    @pytest.mark.parametrize(("make", "discount"), cases(EVERY, [0.9]))
    def test_boyan_discounted(self, make, discount):
        case = boyan("episodic")
        value = make(discount).answer(gd.Problem(case.log(), case.policy, gd.Tabular(13, 2), 0)).value
        mdp = gd.mdp.boyan_chain("episodic")
        assert value == pytest.approx(mdp.value(case.target, discount), abs=1e-9)

    @pytest.mark.parametrize(("make", "discount"), cases(EVERY, [1.0]))
    def test_boyan_average(self, make, discount):
        case = boyan("continuing")
        value = make(discount).answer(gd.Problem(case.log(), case.policy, gd.Tabular(13, 2), 0)).value
        assert value == pytest.approx(
            gd.mdp.boyan_chain("continuing").value(case.target, 1.0), abs=10 * tolerance(make)
        )

    @pytest.mark.parametrize(("make", "discount"), cases(MAIN, [0.5, 1.0]))
    def test_error_falls_with_the_root_of_n(self, make, discount):
        truth, errors = problem(3, ending=True).truth(discount), []
        sizes = [200, 800, 3200]
        for n in sizes:
            values = [make(discount).answer(log).value for log in forty_logs(n)]
            errors.append(np.sqrt(np.mean((np.array(values) - truth) ** 2)))
        slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
        assert -0.75 < slope < -0.3


@cache
def forty_logs(n):
    """The same for every estimator, which then share their moments too."""
    case, rng = problem(3, ending=True), np.random.default_rng([5, n])
    return [gd.Problem(case.sample(n, rng), case.policy, gd.Tabular(4, 2), 0) for _ in range(40)]


class TestOneSolve:
    """With a constant among the features, no ridge and γ < 1 all of these are one estimate."""

    FEATURES = np.random.default_rng(9).normal(size=(8, 3))

    @pytest.mark.parametrize("discount", [0.0, 0.5, 0.9])
    @pytest.mark.parametrize("ending", [False, True])
    @pytest.mark.parametrize("table", [False, True])
    @pytest.mark.parametrize("seed", range(3))
    def test_all_agree(self, seed, table, ending, discount):
        case, rng = problem(seed, ending), np.random.default_rng(seed)
        data = case.sample(600, rng, weights=rng.uniform(0.2, 2, 600))
        functions = gd.Tabular(4, 2) if table else gd.LinearFeatures(lambda s, a: self.FEATURES[2 * s + a])
        expected = gd.evaluate(data, case.policy, gd.LSTDQ(discount), functions=functions)
        shared = gd.Problem(data, case.policy, functions)
        again = evaluate_problem(shared, gd.GradientDICE(discount), Intervals())
        assert again.value == pytest.approx(expected.value, abs=1e-9)
        features = np.eye(8) if table else np.column_stack([np.ones(8), self.FEATURES])
        radius = kernels.fitted_q_radius(data, case.target, discount, features)
        for make in EVERY:
            estimator = make(discount)
            if make is gd.BlackBox or (getattr(estimator, "positive", False) and not table):
                continue
            found = evaluate_problem(shared, estimator, Intervals())
            if make is gd.FQE and radius >= 1:
                assert found.status is gd.Status.NOT_CONVERGED and found.interval is None
                continue
            assert found.value == pytest.approx(expected.value, abs=1e-9), estimator
            assert found.standard_error == pytest.approx(expected.standard_error, rel=1e-6), estimator
            np.testing.assert_allclose(known(found.ratio), known(expected.ratio), atol=1e-7)

    @pytest.mark.parametrize("ending", [False, True])
    @pytest.mark.parametrize("seed", range(3))
    def test_all_agree_on_the_average_reward_of_a_table(self, seed, ending):
        case, rng = problem(seed, ending), np.random.default_rng(seed)
        data = case.sample(600, rng, weights=rng.uniform(0.2, 2, 600))
        expected, shared = gd.evaluate(data, case.policy, gd.LSTDQ(1.0)), gd.Problem(data, case.policy)
        for make in EVERY:
            if make in DISCOUNTED_ONLY:
                continue
            found = evaluate_problem(shared, make(1.0), Intervals())
            assert found.value == pytest.approx(expected.value, abs=10 * tolerance(make))
            assert found.standard_error == pytest.approx(expected.standard_error, rel=1e-5)

    @pytest.mark.parametrize("discount", [0.9, 1.0])
    def test_without_a_constant_gradient_dice_is_the_hard_constraint(self, discount):
        case, rng = problem(0), np.random.default_rng(0)
        data = case.sample(600, rng)
        functions = gd.LinearFeatures(lambda s, a: self.FEATURES[2 * s + a], intercept=False)
        hard = gd.evaluate(data, case.policy, gd.GradientDICE(discount, norm_penalty=np.inf), functions=functions)
        same = gd.evaluate(data, case.policy, Lagrangian.gradient_dice(discount), functions=functions)
        assert same.value == pytest.approx(hard.value, abs=1e-10)
        assert same.standard_error == pytest.approx(hard.standard_error, rel=1e-8)

    def test_the_dual_preset_is_dual_dice(self):
        case, rng = problem(0), np.random.default_rng(0)
        data = case.sample(600, rng)
        functions = gd.LinearFeatures(lambda s, a: self.FEATURES[2 * s + a], intercept=False)
        first = gd.evaluate(data, case.policy, gd.DualDICE(0.9, power=2.0), functions=functions)
        second = gd.evaluate(data, case.policy, Lagrangian.dual_dice(0.9), functions=functions)
        assert second.value == pytest.approx(first.value, abs=1e-10)


@pytest.mark.parametrize("ending", [False, True])
@pytest.mark.parametrize("discount", [0.5, 0.9, 1.0])
def test_agrees_with_plain_versions(discount, ending):
    """The same numbers from n × n kernel matrices and from loops, weights and ends included."""
    case, rng = problem(6, ending), np.random.default_rng(6)
    data = case.sample(150, rng, weights=rng.uniform(0.5, 1.5, 150))
    mix = rng.normal(size=(8, 3))
    small = gd.LinearFeatures(lambda s, a: mix[2 * s + a])
    table = gd.Tabular(4, 2)
    x, x_next, x0, rewards, weights = kernels.tables(data, case.target, discount)
    full = np.column_stack([np.ones(8), mix])
    if x.shape[1] == 9:  # the absorbing state has an indicator of its own
        full = np.block([[full, np.zeros((8, 1))], [np.zeros((1, 4)), np.ones((1, 1))]])
    y, y_next, y0 = x @ full, x_next @ full, x0 @ full

    value, ratio = kernels.mwl(y, x, x_next, x0, rewards, weights, discount)
    found = gd.MWL(discount, discriminator=table).answer(gd.Problem(data, case.policy, small, 0))
    assert found.value == pytest.approx(value, abs=1e-10)
    np.testing.assert_allclose(known(found.ratio), (weights[:150].sum()) * ratio[:150], atol=1e-8)
    size = float(weights @ ratio)
    normalised = gd.MWL(discount, discriminator=table, self_normalize=True).answer(
        gd.Problem(data, case.policy, small, 0)
    )
    assert normalised.value == pytest.approx(value / size, abs=1e-10)

    keep = slice(0, -1) if x.shape[1] == 9 else slice(None)  # Q is 0 once all is over
    value = kernels.mql(y[:, keep], y_next[:, keep], y0[keep], x, rewards, weights, discount)
    found = gd.MQL(discount, discriminator=table).answer(gd.Problem(data, case.policy, small, 0))
    assert found.value == pytest.approx(value, abs=1e-10)
    assert np.average(found.ratio * data.rewards, weights=data.weights) == pytest.approx(value, abs=1e-10)

    value = kernels.fitted_q(data, case.target, discount, 2000)
    assert gd.FQE(discount).answer(gd.Problem(data, case.policy, table, 0)).value == pytest.approx(value, abs=1e-10)

    on_the_log = np.ones(len(x))
    if x.shape[1] == 9:
        on_the_log[-1] = 0
    for alphas in ((0.0, 1.0, 1.0), (0.5, 0.0, 1.0), (0.5, 1.0, 0.0), (0.5, 1.0, 1.0)):
        expected = kernels.lagrangian(y, y_next, y0, rewards, weights, discount, *alphas, 1, on_the_log)
        for read_out, value in zip(gd.ReadOut, expected, strict=True):
            if read_out is gd.ReadOut.CRITIC and alphas[2] == 0:
                continue
            answer = Lagrangian(discount, *alphas, read_out=read_out).answer(gd.Problem(data, case.policy, small, 0))
            assert answer.value == pytest.approx(value, abs=1e-8)
