"""The black-box estimator: its programme against others' solvers, and what weights for single rows do."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import nnls

import gradientdice as gd
from gradientdice.estimators.minimax.black_box import simplex_weights
from problems import known
from reference import kernels
from reference.population import problem


def by_nonnegative_least_squares(changes, mass, ridge):
    """The same programme with Σw = 1 as a heavy row."""
    n = len(mass)
    rows = np.vstack([changes.T, np.sqrt(ridge) * np.diag(1 / np.sqrt(mass)), np.full((1, n), 1e5)])
    weights, _ = nnls(rows, np.append(np.zeros(len(rows) - 1), 1e5), maxiter=100 * n)
    return weights / weights.sum()


@pytest.mark.parametrize("ridge", [1.0, 1e-3, 1e-6, 1e-10])
@pytest.mark.parametrize(
    ("n", "width", "offset"), [(5, 3, 0), (20, 30, 0), (20, 30, 1), (60, 8, 0), (60, 8, 1), (150, 40, 0.3)]
)
class TestProgramme:
    def case(self, n, width, offset):
        rng = np.random.default_rng(n + width)
        return rng.normal(size=(n, width)) + offset, rng.dirichlet(np.full(n, 2.0))

    def test_agrees_with_nonnegative_least_squares(self, n, width, offset, ridge):
        changes, mass = self.case(n, width, offset)
        found = simplex_weights(changes, mass, ridge)
        expected = by_nonnegative_least_squares(changes, mass, ridge)
        # Digits go as the ridge does where no weights balance: the dual's numbers are of size 1/ridge.
        np.testing.assert_allclose(found.weights, expected, atol=1e-9 + 1e-15 / ridge)
        assert found.status.ok and found.weights.min() >= 0 and found.weights.sum() == pytest.approx(1, abs=1e-12)

    def test_the_certificate_holds(self, n, width, offset, ridge):
        """No other point of the simplex is below the objective less the gap, and the gap is small."""
        changes, mass = self.case(n, width, offset)
        found, rng = simplex_weights(changes, mass, ridge), np.random.default_rng(0)
        bound = found.stats["objective"] - found.stats["duality_gap"]
        assert found.stats["duality_gap"] <= 1e-8 * found.stats["objective"]

        def objective(weights):
            left = changes.T @ weights
            return 0.5 * left @ left + 0.5 * ridge * np.sum(weights**2 / mass)

        for other in rng.dirichlet(np.ones(n), size=50):
            for share in (1.0, 1e-2, 1e-4):
                near = (1 - share) * found.weights + share * other
                assert objective(near) >= bound * (1 - 1e-12)


def test_agrees_with_sequential_quadratic_programming_on_the_printed_matrix():
    """G as the paper prints it, entry by entry, and a general solver, over rows with more features than rows."""
    rng = np.random.default_rng(2)
    states = rng.normal(size=(15, 2))
    actions = rng.integers(0, 2, size=15)
    data = gd.Transitions(states, actions, states[:, 0], states + 0.3 * rng.normal(size=(15, 2)))
    policy = gd.DiscretePolicy(lambda s: np.column_stack([0.3 + 0 * s[:, 0], 0.7 + 0 * s[:, 0]]), 2)
    functions = gd.RandomFourier(80, bandwidth=0.3)
    fitted = functions.fitted(data, policy)
    z = fitted.at(data.states, data.actions).matrix(162)
    z_next = fitted.expected(data.next_states, policy, rng).matrix(162)
    weights = kernels.simplex_programme(kernels.black_box_matrix(z, z_next), np.full(15, 1 / 15))
    found = gd.BlackBox(1.0, positive=True).answer(gd.Problem(data, policy, functions, 0))
    np.testing.assert_allclose(known(found.ratio) / 15, weights, atol=2e-6)
    assert found.value == pytest.approx(weights @ data.rewards, abs=1e-5)
    assert found.influence is None and "follow chance" in found.cautions[0]


class TestWeightsForRows:
    """A weight for each row instead of each pair: right where nothing is left to chance, and only there."""

    @pytest.mark.parametrize("seed", range(3))
    def test_right_if_the_next_state_follows_from_the_pair(self, seed):
        case = problem(seed)
        case.transition = np.eye(4)[np.array([[1, 2], [2, 0], [3, 3], [0, 1]])]
        data = case.sample(400, np.random.default_rng(seed))
        by_row = gd.BlackBox(1.0, row_weights=True).answer(gd.Problem(data, case.policy, gd.Tabular(4, 2), 0))
        assert by_row.value == pytest.approx(case.truth(1.0), abs=1e-7)
        assert np.mean(by_row.ratio * data.rewards) == pytest.approx(by_row.value, abs=1e-12)

    @pytest.mark.parametrize("seed", range(3))
    def test_another_fixed_point_if_it_does_not(self, seed):
        """The least weights under which the flow is conserved depend on s' too: on the population, not only in samples."""
        case = problem(seed)
        log = case.log()
        answer = gd.BlackBox(1.0, row_weights=True).answer(gd.Problem(log, case.policy, gd.Tabular(4, 2), 0))
        x, x_next, _, _, mass = kernels.tables(log, case.target, 1.0)
        expected = by_nonnegative_least_squares(x - x_next, mass, 1e-10)
        assert answer.value == pytest.approx(expected @ log.rewards, abs=1e-6)
        assert abs(answer.value - case.truth(1.0)) > 1e-3
        flow = expected @ (x - x_next)
        np.testing.assert_allclose(flow, 0, atol=1e-7)  # conserved all the same

    def test_rows_that_do_not_count(self):
        case = problem(0)
        data = case.sample(60, np.random.default_rng(0), weights=np.r_[np.zeros(10), np.ones(50)])
        answer = gd.BlackBox(1.0, row_weights=True).answer(gd.Problem(data, case.policy, gd.Tabular(4, 2), 0))
        assert np.all(known(answer.ratio)[:10] == 0)
        shorter = gd.Transitions(
            data.states[10:], data.actions[10:], data.rewards[10:], data.next_states[10:], data.initial_states
        )
        again = gd.BlackBox(1.0, row_weights=True).answer(gd.Problem(shorter, case.policy, gd.Tabular(4, 2), 0))
        assert again.value == pytest.approx(answer.value, abs=1e-9)

    def test_restarts(self):
        """An end is followed by an initial state: the same log with the restart spelled out gives the same answer."""
        case = problem(1, ending=True)
        case.starts = np.array([2])
        data = case.sample(80, np.random.default_rng(3))
        spelled = gd.Transitions(
            data.states, data.actions, data.rewards, np.where(known(data.terminated), 2, data.next_states), [2]
        )
        values = [
            gd.BlackBox(1.0, row_weights=True).answer(gd.Problem(log, case.policy, gd.Tabular(4, 2), 0)).value
            for log in (data, spelled)
        ]
        assert values[0] == pytest.approx(values[1], abs=1e-12)
        with pytest.raises(gd.InputError, match="restart"):
            bare = gd.Transitions(data.states, data.actions, data.rewards, data.next_states, terminated=data.terminated)
            gd.BlackBox(1.0, row_weights=True).answer(gd.Problem(bare, case.policy, gd.Tabular(4, 2), 0))


def test_weights_in_the_span_are_mwls():
    case, mix = problem(0), np.random.default_rng(3).normal(size=(8, 3))
    data = case.sample(500, np.random.default_rng(0))
    small = gd.LinearFeatures(lambda s, a: mix[2 * s + a])
    found = gd.BlackBox(1.0, kernel=gd.Tabular(4, 2)).answer(gd.Problem(data, case.policy, small, 0))
    expected = gd.MWL(1.0, gd.Tabular(4, 2)).answer(gd.Problem(data, case.policy, small, 0))
    assert found.value == expected.value and found.evidence.mean_ratio == pytest.approx(1, abs=1e-12)


def test_weights_at_zero_stay_there_and_the_shares_know_it():
    """A kernel that cannot be matched drives some weights to 0; the others' shares are still derivatives."""
    case, rng = problem(7), np.random.default_rng(7)
    data = case.sample(200, rng, weights=rng.uniform(0.5, 1.5, 200))
    mix = rng.normal(size=(8, 12))
    kernel = gd.LinearFeatures(lambda s, a: mix[2 * s + a] ** 2)
    estimator = gd.BlackBox(1.0, kernel=kernel, ridge=1e-3)
    found = None
    for seed in range(20):
        mix[:] = np.random.default_rng(seed).normal(size=(8, 12)) * np.r_[np.ones(6), 8 * np.ones(6)]
        case.target = np.random.default_rng(seed).dirichlet(np.full(2, 0.1), size=4)
        found = estimator.answer(gd.Problem(data, case.policy, gd.Tabular(4, 2), 0))
        if (found.ratio == 0).any():
            break
    assert (known(found).ratio == 0).any() and "by force" in known(found).notes[0]
    for row in range(4):
        step = 1e-4 * np.eye(200)[row]
        up, down = (
            estimator.answer(
                gd.Problem(replace(data, weights=data.weights + s * step), case.policy, gd.Tabular(4, 2), 0)
            ).value
            for s in (1, -1)
        )
        size = np.abs(known(known(found).influence).rows).max()
        assert (up - down) / 2e-4 * known(data.weights)[row] == pytest.approx(
            known(known(found).influence).rows[row], abs=1e-4 * size
        )


def test_shares_know_the_ridge_and_the_restarts():
    """A large ridge and a kernel of few features: every term of the influence function counts."""
    case, rng = problem(4, ending=True), np.random.default_rng(4)
    data = case.sample(200, rng, weights=rng.uniform(0.5, 1.5, 200))
    mix = rng.normal(size=(8, 3))
    estimator = gd.BlackBox(1.0, kernel=gd.LinearFeatures(lambda s, a: mix[2 * s + a]), ridge=0.3)

    def value(log: gd.Transitions) -> float:
        return estimator.answer(gd.Problem(log, case.policy, gd.Tabular(4, 2), 0)).value

    shares = estimator.answer(gd.Problem(data, case.policy, gd.Tabular(4, 2), 0)).influence
    for row in range(4):
        step = 1e-4 * np.eye(200)[row]
        up, down = (value(replace(data, weights=data.weights + s * step)) for s in (1, -1))
        size = np.abs(known(shares).rows).max()
        assert (up - down) / 2e-4 * known(data.weights)[row] == pytest.approx(known(shares).rows[row], abs=1e-5 * size)
    many = np.tile(known(data.initial_states), 50)
    for start in range(3):
        one_more = np.append(many, known(data.initial_states)[start])
        moved = 50 * (value(replace(data, initial_states=one_more)) - value(replace(data, initial_states=many)))
        assert moved == pytest.approx(
            known(known(shares).initial)[start], abs=2e-3 * np.abs(known(known(shares).initial)).max()
        )
