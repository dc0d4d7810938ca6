"""Fitted Q evaluation as a candidate for Q."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.default import fitted_values
from gradientdice.default.fitted_values import fitted_q_values
from gradientdice.default.learners import Learners
from gradientdice.default.search import search_functions
from gradientdice.dice.stochastic.fitted_q import FittedQ, member_seeds
from gradientdice.estimators.doubly_robust.network_scores import scored_q, value_bounds
from gradientdice.problem.inputs import network_inputs
from gradientdice.statistics.influence import HeldOutQ
from problems import known

GAMMA = 0.8
POLICY = gd.DiscretePolicy(lambda states: np.tile([0.3, 0.7], (len(states), 1)), 2)


def pushed(rows: int, seed: int, ends: bool = False) -> tuple[gd.Transitions, np.ndarray]:
    """s' = 0.8 s ± 0.3 with reward s, and its exact Q: V = a s + b. With ends, every tenth step is an episode's last."""
    rng = np.random.default_rng(seed)
    states, starts, actions = rng.normal(size=(rows, 1)), rng.normal(size=(200, 1)), rng.integers(0, 2, rows)
    following = 0.8 * states + 0.3 * (2 * actions[:, None] - 1)
    ended = rng.random(rows) < 0.1 if ends else np.zeros(rows, dtype=bool)
    goes_on = GAMMA * (0.9 if ends else 1.0)
    a = 1 / (1 - goes_on * 0.8)
    b = goes_on * a * 0.3 * 0.4 / (1 - goes_on)
    data = gd.Transitions(states, actions, states[:, 0], following, initial_states=starts, terminated=ended)
    return data, states[:, 0] + goes_on * (a * following[:, 0] + b)


@pytest.fixture
def short(monkeypatch):
    """Less training, which these small problems do not need."""
    monkeypatch.setattr(fitted_values, "MEMBERS", 1)
    monkeypatch.setattr(fitted_values, "STEPS", 2_000)


@pytest.mark.parametrize("ends", [False, True])
def test_q_of_a_linear_system_is_found(short, ends):
    data, exact = pushed(4000, 0, ends)
    problem = gd.Problem(data, POLICY)
    (found,) = fitted_q_values(problem, [GAMMA], problem.folds(2))()
    assert found is not None
    assert np.sqrt(np.mean((found.q - exact) ** 2)) < 0.1 * exact.std()
    assert not found.next_value[data.ended].any()
    if not ends:
        # V is the policy's mean of Q: with the exact Q residuals are 0.
        residual = data.rewards + GAMMA * found.next_value - found.q
        assert abs(residual.mean()) < 0.02 * exact.std()


def test_rows_are_scored_by_networks_that_did_not_see_them(short):
    data, _ = pushed(600, 1)
    problem = gd.Problem(data, POLICY)
    folds = problem.folds(2)
    (first,) = fitted_q_values(problem, [GAMMA], folds)()
    own = folds.rows == 0
    changed = np.where(own, data.rewards[::-1], data.rewards)
    (second,) = fitted_q_values(gd.Problem(replace(data, rewards=changed), POLICY), [GAMMA], folds)()
    assert first is not None and second is not None
    assert (first.q[own] == second.q[own]).all() and (first.q[~own] != second.q[~own]).all()


def test_values_stay_within_what_rewards_allow_and_v_is_that_of_the_q_that_is_kept():
    data, _ = pushed(50, 2)
    problem = gd.Problem(data, POLICY)
    inputs = network_inputs(data, POLICY, 1, np.random.default_rng(0))
    # A network that says 100 for the first action and −3 for the second, whatever the state.
    layers = [(np.array([[[0.0], [100.0], [-3.0]]]), np.zeros((1, 1)))]
    found = scored_q([layers] * 2, inputs, problem.folds(2), 1, (-10.0, 10.0))
    assert found.q == pytest.approx(np.where(data.actions == 0, 10.0, -3.0))
    assert found.next_value == pytest.approx(0.3 * 10 + 0.7 * -3)
    low, high = value_bounds(data, GAMMA)
    assert low == pytest.approx(data.rewards.min() / (1 - GAMMA))
    assert high == pytest.approx(data.rewards.max() / (1 - GAMMA))
    never = HeldOutQ(np.full(50, np.nan), np.zeros(50), None)
    assert not fitted_values._is_finite(never) and fitted_values._is_finite(found)


def test_the_copy_follows_fast_enough_for_the_horizon():
    for discount, steps in ((0.9, 10_000), (0.99, 10_000), (0.99, 2_500), (0.995, 10_000)):
        rate = FittedQ(steps=steps, least_rate=0.05).rate(discount)
        assert (1 - discount) * rate * steps >= 5 * (1 - 1e-9)
    assert FittedQ().rate(0.9) == 0.01 and FittedQ(least_rate=0.05).rate(0.9) == 0.05
    assert FittedQ(steps=100).rate(0.9999) == 0.5


def test_any_seed_will_do_and_a_log_that_is_too_large_has_no_fit(monkeypatch, short):
    assert member_seeds(3, 2).tolist() == [3000, 3001]
    assert member_seeds(2**40, 2).dtype == np.uint32
    data, _ = pushed(50, 2)
    problem = gd.Problem(data, POLICY, seed=20261116)
    monkeypatch.setattr(fitted_values, "MOST_BYTES", 4 * 4 * 50 * 2 * 3 - 1)
    assert fitted_q_values(problem, [GAMMA, 1.0], problem.folds(2))() == [None, None]


def test_a_search_uses_the_fit_that_explains_the_log_better_than_the_model():
    """A simulation that is off by a factor has a large Bellman loss; the exact Q, as a fit, has none."""
    data, exact = pushed(3000, 3)
    # The row's own state gives V: (Q − r) / γ at the state that follows.
    a = 1 / (1 - GAMMA * 0.8)
    b = GAMMA * a * 0.3 * 0.4 / (1 - GAMMA)
    right = HeldOutQ(exact, a * data.next_states[:, 0] + b, a * known(data.start_states)[:, 0] + b)
    wrong = HeldOutQ(*(1.4 * part for part in (right.q, right.next_value, known(right.initial_value))))
    truth = (1 - GAMMA) * float(known(right.initial_value).mean())

    class Model:
        by_discount, values, spreads, left_share, lasting = [[wrong]], (1.4 * truth,), (0.0,), 0.0, (1.0,)

        def notes(self, number: int) -> tuple[str, ...]:
            return ()

    def simulate(problem, discounts, folds, effort):
        return Model()

    def fit(problem, discounts, folds):
        return lambda: [right]

    def diverged(problem, discounts, folds):
        return lambda: [None]

    problem = gd.Problem(data, POLICY)
    (found,) = search_functions(problem, [GAMMA], Learners(simulate, fit))
    assert found.chosen.shares["fitted Q evaluation's"] > 0.95
    assert found.chosen.answer.value == pytest.approx(truth, abs=1e-3)
    (without,) = search_functions(problem, [GAMMA], Learners(simulate, diverged))
    assert "fitted Q evaluation's" not in without.chosen.shares
