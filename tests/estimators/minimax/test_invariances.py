"""What estimators over single transitions must not depend on; their influence values and coverage."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import gradientdice as gd
from problems import covers, known
from reference.population import problem
from reference.single_transition import EVERY, MAIN, Lagrangian, cases


@pytest.mark.parametrize(("make", "discount"), cases(EVERY, [0.9, 1.0]))
class TestInvariances:
    def value(self, make, discount, data, policy):
        return make(discount).answer(gd.Problem(data, policy, gd.Tabular(4, 2), 0)).value

    def test_duplicated_and_permuted_rows(self, make, discount):
        case, rng = problem(1, ending=True), np.random.default_rng(1)
        data = case.sample(300, rng)
        order = np.tile(rng.permutation(300), 2)
        columns = {name: getattr(data, name)[order] for name in ("states", "actions", "rewards", "next_states")}
        again = gd.Transitions(**columns, terminated=known(data.terminated)[order], initial_states=data.initial_states)
        weighted = replace(data, weights=np.full(300, 2.0))
        first = self.value(make, discount, data, case.policy)
        assert self.value(make, discount, again, case.policy) == pytest.approx(first, abs=1e-8)
        assert self.value(make, discount, weighted, case.policy) == pytest.approx(first, abs=1e-8)

    def test_renamed_states(self, make, discount):
        case, rng = problem(2, ending=True), np.random.default_rng(2)
        data, new = case.sample(300, rng), np.array([2, 0, 3, 1])
        again = replace(
            data, states=new[data.states], next_states=new[data.next_states], initial_states=new[data.initial_states]
        )
        renamed = np.empty_like(case.target)
        renamed[new] = case.target
        first = self.value(make, discount, data, case.policy)
        assert self.value(make, discount, again, gd.TabularPolicy(renamed)) == pytest.approx(first, abs=1e-8)

    def test_a_reward_shift_shifts_the_value(self, make, discount):
        """Exactly, without ends: the ratio's mean is 1. (After an end there is no reward to shift.)"""
        case, rng = problem(2), np.random.default_rng(2)
        data = case.sample(300, rng)
        first = self.value(make, discount, data, case.policy)
        shifted = self.value(make, discount, replace(data, rewards=data.rewards + 3.0), case.policy)
        assert shifted == pytest.approx(first + 3.0, abs=1e-8)

    def test_is_the_logged_mean_where_the_target_made_the_data(self, make, discount):
        case = problem(3)
        case.data_dist = case.chain(1.0).occupancy(case.target, discount)
        answer = make(discount).answer(gd.Problem(case.log(), case.policy, gd.Tabular(4, 2), 0))
        assert answer.value == pytest.approx(np.sum(case.data_dist * case.reward), abs=1e-8)
        np.testing.assert_allclose(answer.ratio, 1, atol=1e-6)


@pytest.mark.parametrize(("make", "discount"), cases(MAIN, [0.9, 1.0]))
class TestInference:
    @pytest.mark.parametrize("ending", [False, True])
    def test_shares_are_derivatives(self, make, discount, ending):
        case, rng = problem(4, ending), np.random.default_rng(4)
        data = case.sample(200, rng, weights=rng.uniform(0.5, 1.5, 200))
        data = replace(data, initial_states=known(data.initial_states)[:20])
        estimator, functions = make(discount), gd.Tabular(4, 2)
        shares = estimator.answer(gd.Problem(data, case.policy, functions, 0)).influence
        scale = np.abs(shares.rows).max()
        for row in range(4):
            step = 1e-4 * np.eye(200)[row]
            up, down = (
                estimator.answer(
                    gd.Problem(replace(data, weights=data.weights + s * step), case.policy, functions, 0)
                ).value
                for s in (1, -1)
            )
            assert (up - down) / 2e-4 * known(data.weights)[row] == pytest.approx(shares.rows[row], abs=1e-5 * scale)
        if discount == 1 and not ending:
            assert shares.initial is None
            return
        many = np.tile(known(data.initial_states), 200)
        base = estimator.answer(gd.Problem(replace(data, initial_states=many), case.policy, functions, 0)).value
        for start in range(3):
            one_more = replace(data, initial_states=np.append(many, known(data.initial_states)[start]))
            moved = estimator.answer(gd.Problem(one_more, case.policy, functions, 0)).value - base
            size = np.abs(shares.initial).max()
            assert 200 * moved == pytest.approx(shares.initial[start], abs=1e-2 * size)


@cache
def two_hundred_logs():
    """The same for every estimator, which then share their moments too."""
    case, rng = problem(5, ending=True), np.random.default_rng(5)
    return [gd.Problem(case.sample(400, rng), case.policy, gd.Tabular(4, 2)) for _ in range(200)]


@pytest.mark.parametrize(
    ("make", "discount"),
    [
        *cases([gd.MWL, gd.FQE, Lagrangian.best_dice], [0.9]),
        *cases([gd.MQL, gd.BlackBox], [1.0]),
    ],
)
def test_intervals_cover(make, discount):
    truth = problem(5, ending=True).truth(discount)
    hits = sum(covers(make(discount).answer(log), log.data, truth) for log in two_hundred_logs())
    assert 0.88 <= hits / 200 <= 0.99
