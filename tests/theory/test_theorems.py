"""The paper's theory as checks that can fail, and its errata as checks that do."""

import numpy as np
import pytest

import gradientdice as gd
from problems import TARGET, UNIFORM, known, random_problem
from reference import learners, linear

DISCOUNTS = (0.0, 0.5, 0.9, 1.0)


def loss(mdp, target, data_dist, discount, lam, tau):
    """L(τ) = ½‖Tτ − Dτ‖²_{D⁻¹} + ½λ(d·τ − 1)²."""
    data = data_dist.ravel()
    mu0 = (mdp.initial[:, None] * target).ravel()
    flow = (1 - discount) * mu0 + discount * mdp.pair_chain(target).T @ (data * tau) - data * tau
    return 0.5 * np.sum(flow**2 / data) + 0.5 * lam * (data @ tau - 1) ** 2


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("lam", [0.1, 1.0, 10.0])
class TestTheorem1:
    def test_the_ratio_is_optimal(self, problem, discount, lam):
        mdp, target, data_dist = problem
        tau = mdp.ratio(target, discount, data_dist).ravel()
        assert loss(mdp, target, data_dist, discount, lam, tau) < 1e-25

    def test_nothing_else_is(self, problem, discount, lam):
        """L is a positive definite quadratic around τ*: its smallest curvature is positive."""
        mdp, target, data_dist = problem
        data = data_dist.ravel()
        flow = (discount * mdp.pair_chain(target).T - np.eye(10)) * data
        curvature = flow.T @ (flow / data[:, None]) + lam * np.outer(data, data)
        assert np.linalg.eigvalsh(curvature)[0] > 1e-6


def test_theorem_1_fails_without_ergodicity():
    """With two closed classes at discount 1 another τ has zero loss too: the theorem needs its assumption."""
    transition = np.zeros((2, 1, 2))
    transition[0, 0, 0] = transition[1, 0, 1] = 1
    mdp = gd.mdp.TabularMDP(transition, np.zeros((2, 1)), np.array([0.5, 0.5]))
    data_dist = np.array([[0.5], [0.5]])
    for tau in (np.array([2.0, 0.0]), np.array([0.0, 2.0]), np.array([1.0, 1.0])):
        assert loss(mdp, np.ones((2, 1)), data_dist, 1.0, 1.0, tau) == 0
    moments = gd.Moments.exact(mdp, np.ones((2, 1)), np.eye(2), data_dist)
    assert gd.solve(gd.GradientDICE(1.0), moments).status is gd.Status.SINGULAR


def expected_update(problem, features, discount, lam, ridge):
    mdp, target, data_dist = problem
    x, data, chain, mu0, _ = linear.matrices(mdp, target, data_dist, features)
    return learners.expected_update_matrices((x, data, chain, mu0), discount, lam, ridge)


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("ridge", [0.0, 0.1])
class TestTheorem2:
    def test_every_eigenvalue_has_a_negative_real_part(self, problem, rng, discount, ridge):
        """At discount 1 with a table too, where the paper holds a ridge to be necessary."""
        for features in (np.eye(10), rng.normal(size=(10, 4))):
            big, _ = expected_update(problem, features, discount, 1.0, ridge)
            assert np.linalg.eigvals(big).real.max() < 0

    def test_iterates_reach_the_fixed_point_which_is_the_closed_form(self, problem, rng, discount, ridge):
        features = rng.normal(size=(10, 3)) / 2
        big, small = expected_update(problem, features, discount, 1.0, ridge)
        fixed = -np.linalg.solve(big, small)
        point = np.zeros(7)
        step = 0.5 * np.min(-2 * np.linalg.eigvals(big).real / np.abs(np.linalg.eigvals(big)) ** 2)
        for _ in range(int(40 / (step * -np.linalg.eigvals(big).real.max()))):
            point = point + step * (big @ point + small)
        np.testing.assert_allclose(point, fixed, atol=1e-8)
        solution = gd.solve(
            gd.GradientDICE(discount, 1.0, ridge), gd.Moments.exact(problem[0], problem[1], features, problem[2])
        )
        ours = np.concatenate([solution.critic_params, solution.ratio_params, [solution.norm_multiplier]])
        np.testing.assert_allclose(ours, fixed, atol=1e-9)


@pytest.mark.slow
def test_robbins_monro_iterates_approach_the_fixed_point():
    mdp, target, _ = random_problem(0)
    data_dist = np.full((5, 2), 0.1)  # no rare pair, whose mode would take far longer than the rest
    source, recorder = _source(mdp, target, data_dist, 0.5)
    truth = mdp.ratio(target, 0.5, data_dist).ravel()
    errors = []
    for steps in (2_000, 40_000, 800_000):
        solver = gd.PrimalDual(steps, gd.RobbinsMonro(0.5, decay_steps=1000, power=0.75))
        runs = [solver.solve(gd.GradientDICE(0.5), source, recorder, seed=seed) for seed in range(4)]
        errors.append(np.mean([np.mean((run.ratio_params - truth) ** 2) for run in runs]))
    # Twenty times the steps divide the rate, and with it the variance, by almost 20^0.75 = 9.5.
    assert errors[1] < errors[0] / 3 and errors[2] < errors[1] / 3


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("lam", [0.3, 1.0])
def test_the_fixed_point_is_the_kkt_solution_and_the_sherman_morrison_form(problem, rng, discount, lam):
    mdp, target, data_dist = problem
    ridge, x = 0.05, rng.normal(size=(10, 4))
    moments = gd.Moments.exact(mdp, target, x, data_dist)
    a, c, v, b = moments.bellman(discount), moments.gram, moments.mean, moments.initial
    inner = a.T @ np.linalg.inv(c) @ a
    right = (1 - discount) * a.T @ np.linalg.solve(c, known(b))
    kkt = np.linalg.solve(inner + lam * np.outer(v, v) + ridge * np.eye(4), right + lam * v)
    xi = np.linalg.inv(ridge * np.eye(4) + inner)
    z, beta = xi @ v, 1 + lam * v @ xi @ v
    # The paper's last term has (1−γ) zᵀAᵀC⁻¹b, which is zᵀ·right.
    sherman_morrison = xi @ right + lam / beta * z * (1 - z @ right)
    ours = gd.solve(gd.GradientDICE(discount, lam, ridge), moments).ratio_params
    np.testing.assert_allclose(ours, kkt, atol=1e-10)
    np.testing.assert_allclose(ours, sherman_morrison, atol=1e-10)


def test_the_printed_sanity_formula_lacks_an_inverse(problem):
    """(1−γ) 1ᵀ(I − γPᵀ)⁻¹ μ0 = 1; without the inverse, as printed, it is not."""
    mdp, target, _ = problem
    mu0 = (mdp.initial[:, None] * target).ravel()
    system = np.eye(10) - 0.7 * mdp.pair_chain(target).T
    assert 0.3 * np.linalg.solve(system, mu0).sum() == pytest.approx(1)
    assert abs(0.3 * (system @ mu0).sum() - 1) > 0.1


class TestRegularisationPath:
    """Case 1 of section 4.2: γ = 1 with a table, w_{∞,ξ} → w_* as ξ → 0."""

    def test_bias_is_of_order_ridge(self):
        mdp = gd.mdp.boyan_chain("continuing")
        truth = mdp.ratio(TARGET, 1.0, UNIFORM).ravel()
        moments = gd.Moments.exact(mdp, TARGET, np.eye(26), UNIFORM)
        ridges = np.geomspace(1e-7, 1e-5, 5)
        errors = [np.linalg.norm(gd.solve(gd.GradientDICE(1.0, ridge=r), moments).ratio_params - truth) for r in ridges]
        slope = np.polyfit(np.log(ridges), np.log(errors), 1)[0]
        assert slope == pytest.approx(1, abs=0.02)

    def test_no_ridge_is_needed(self):
        mdp = gd.mdp.boyan_chain("continuing")
        solution = gd.solve(gd.GradientDICE(1.0), gd.Moments.exact(mdp, TARGET, np.eye(26), UNIFORM))
        np.testing.assert_allclose(solution.ratio_params, mdp.ratio(TARGET, 1.0, UNIFORM).ravel(), atol=1e-10)
        assert solution.stats["condition_number"] == pytest.approx(69.7, abs=0.1)

    @pytest.mark.parametrize("ridge", [1e-3, 1e-2, 1e-1])
    @pytest.mark.parametrize("lam", [0.5, 1.0])
    def test_l2_as_printed_is_wrong_and_as_corrected_is_right(self, ridge, lam):
        """L₂ = ‖DXw − PᵀDXw‖² in the norm of XC⁻¹Xᵀ; its closed form has a minus before the second term."""
        mdp = gd.mdp.boyan_chain("continuing")
        x = gd.mdp.pair_features(gd.mdp.boyan_features(), 2)
        moments = gd.Moments.exact(mdp, TARGET, x, UNIFORM)
        w = gd.solve(gd.GradientDICE(1.0, lam, ridge), moments).ratio_params
        d, chain, metric = np.eye(26) / 26, mdp.pair_chain(TARGET), x @ np.linalg.inv(moments.gram) @ x.T
        flow = d @ x @ w - chain.T @ d @ x @ w
        direct = flow @ metric @ flow
        eigenvalues, q = np.linalg.eigh(moments.bellman(1.0).T @ np.linalg.inv(moments.gram) @ moments.bellman(1.0))
        u = q.T @ moments.mean
        inverse = 1 / (ridge + np.maximum(eigenvalues, 0))
        s1, s2 = np.sum(u**2 * inverse), np.sum(u**2 * inverse**2)
        first, second = lam**2 * s1 / (1 + lam * s1) ** 2, lam**2 * ridge * s2 / (1 + lam * s1) ** 2
        assert direct == pytest.approx(first - second, rel=1e-9)
        assert abs(direct - (first + second)) > 1e-3 * direct
        assert moments.mean @ w - 1 == pytest.approx(lam * s1 / (1 + lam * s1) - 1, rel=1e-9)

    def test_the_propositions_assumption_is_stronger_than_needed(self):
        """XC⁻¹Xᵀ ≻ 0 forces a table; τ* ∈ col(X) and a one-dimensional null(A) suffice."""
        mdp, target, data_dist = random_problem(1)
        truth = mdp.ratio(target, 1.0, data_dist).ravel()
        x = np.column_stack([truth, np.random.default_rng(0).normal(size=(10, 2))])
        solution = gd.solve(gd.GradientDICE(1.0), gd.Moments.exact(mdp, target, x, data_dist))
        np.testing.assert_allclose(x @ solution.ratio_params, truth, atol=1e-10)
        metric = x @ np.linalg.inv(x.T @ (data_dist.ravel()[:, None] * x)) @ x.T
        assert np.linalg.matrix_rank(metric) == 3 < 10


class TestOneSolve:
    """With an intercept, γ < 1 and no ridge, a family of estimators is one."""

    @pytest.mark.parametrize("discount", [0.3, 0.9])
    def test_they_coincide(self, problem, rng, discount):
        mdp, target, data_dist = problem
        x = np.column_stack([np.ones(10), rng.normal(size=(10, 3)) * 0.3])
        raw = linear.matrices(mdp, target, data_dist, x)
        moments = gd.Moments.exact(mdp, target, x, data_dist)
        ratio = linear.dual_lstdq_ratio(*raw[:4], discount)
        value = linear.lstdq_value(*raw, discount)
        estimators = [gd.GradientDICE(discount, lam) for lam in (0.0, 0.1, 1.0, 30.0, np.inf)]
        for estimator in [*estimators, gd.DualDICE(discount, power=2.0)]:
            solution = gd.solve(estimator, moments)
            np.testing.assert_allclose(solution.ratio_params, ratio, atol=1e-10)
            assert solution.ratio_params @ moments.reward == pytest.approx(value, abs=1e-10)
        for other in (linear.mwl_value, linear.mql_value, linear.fqe_value):
            assert other(*raw, discount) == pytest.approx(value, abs=1e-10)
        assert linear.doubly_robust_value(*raw, discount, ratio) == pytest.approx(value, abs=1e-10)
        # Doubly robust: right for any ratio, here a wrong one, since Q solves the same system.
        wrong = linear.doubly_robust_value(*raw, discount, ratio + rng.normal(size=4))
        assert wrong == pytest.approx(value, abs=1e-10)

    def test_without_an_intercept_the_penalty_matters(self, problem, rng):
        mdp, target, data_dist = problem
        moments = gd.Moments.exact(mdp, target, rng.normal(size=(10, 3)), data_dist)
        values = [gd.solve(gd.GradientDICE(0.9, lam), moments).ratio_params @ moments.reward for lam in (0.1, 10.0)]
        assert abs(values[0] - values[1]) > 1e-4


class TestHardExample:
    def test_printed_partials_with_the_last_one_corrected(self, rng):
        """Appendix B at random points; ∂J/∂f₂ is ¼τ₁² + ¼τ₂² − ½τ₂²(1 + ½f₂)."""
        from gradientdice_studies.hard_example import gradient_at

        for _ in range(5):
            t1, t2, f1, f2, eta = rng.normal(size=5)
            printed = [
                t1 * f1 / 2 + t1 * f2 / 2 - t1 * (f1 + f1**2 / 4) + eta * t1,
                t2 * f1 / 2 + t2 * f2 / 2 - t2 * (f2 + f2**2 / 4) + eta * t2,
                t1**2 / 4 + t2**2 / 4 - t1**2 / 2 * (1 + f1 / 2),
                t1**2 / 4 + t2**2 / 4 - t2**2 / 2 * (1 + f2 / 2),
                t1**2 / 2 + t2**2 / 2 - 1 - eta,
            ]
            ours = gradient_at(gd.GenDICE(1.0), (np.array([t1, t2]), np.array([f1, f2]), eta))
            np.testing.assert_allclose(ours, printed, rtol=1e-4, atol=1e-5)
            as_printed = t1**2 / 4 + t2**2 / 4 - t1**2 / 2 * (1 + f2 / 2)
            assert abs(ours[3] - as_printed) > 1e-3

    def test_gendice_stops_at_a_wrong_saddle_and_leaves_it_when_perturbed(self):
        from gradientdice_studies import hard_example as example

        gen = gd.GenDICE(1.0)
        assert (example.gradient_at(gen, example.WRONG_POINT) == 0).all()
        assert (example.ratio_curvature_at(gen, example.WRONG_POINT) < 0).all()
        assert (example.descend(gen, example.WRONG_POINT)[-1] == 0).all()
        nearby = (np.array([1e-6, 1e-6], dtype=np.float32), *example.WRONG_POINT[1:])
        np.testing.assert_allclose(example.descend(gen, nearby)[-1], 1, atol=1e-3)

    def test_gradientdice_has_one_stationary_point_the_answer(self):
        from gradientdice_studies import hard_example as example

        gradient = gd.GradientDICE(1.0)
        assert np.abs(example.gradient_at(gradient, example.WRONG_POINT)).max() > 0.1
        np.testing.assert_allclose(example.descend(gradient, example.WRONG_POINT)[-1], 1, atol=1e-4)
        big, small = expected_update(
            (gd.mdp.single_state(), example.UNIFORM, example.UNIFORM), np.eye(2), 1.0, 1.0, 0.0
        )
        assert np.linalg.matrix_rank(big) == 5
        np.testing.assert_allclose(-np.linalg.solve(big, small), [0, 0, 1, 1, 0], atol=1e-12)


class TestFiniteSamples:
    """Proposition 2: ε_opt of the averaged iterates of Algorithm 1 falls as n^(−1/2), and stays below its bound."""

    @pytest.mark.slow
    def test_rate_and_bound(self):
        from gradientdice.dice.optimality import SaddleProblem
        from gradientdice.dice.stochastic.primal_dual import as_solution, train

        mdp, target, data_dist = random_problem(0, states=4)
        estimator, seeds, counts = gd.GradientDICE(0.9), range(32), [500, 2_000, 8_000, 32_000]
        source, recorder = _source(mdp, target, data_dist, 0.9)
        moments = gd.Moments.exact(mdp, target, np.eye(8), data_dist)
        means = []
        for n in counts:
            solver = gd.ProjectedPrimalDual(n)
            balls, _ = solver.balls(estimator, source, moments)
            group, problem = (
                solver.group(estimator, source, recorder, balls),
                SaddleProblem(estimator, moments, balls.ratio_radius, balls.critic_radius),
            )
            outcome = train(group, seeds)
            runs = [as_solution(group, outcome, seed=seed) for seed in seeds]
            gaps = [problem.gap(run.ratio_params, run.critic_params, run.norm_multiplier) for run in runs]
            assert max(gaps) < balls.error_bound(n, 1.0, 0.05)
            means.append(np.mean(gaps))
        assert np.polyfit(np.log(counts), np.log(means), 1)[0] == pytest.approx(-0.5, abs=0.15)


def _source(mdp, target, data_dist, discount):
    from gradientdice.dice.stochastic.setup import RatioError
    from gradientdice.dice.stochastic.sources import MDPSource

    truth = mdp.ratio(target, discount, data_dist).ravel()
    return MDPSource.create(mdp, target, data_dist, None), RatioError.create(None, truth)
