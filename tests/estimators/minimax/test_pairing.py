"""MWL and MQL with two different function classes: their own fixed points, and what they refuse."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from problems import covers, known
from reference.population import problem

MIX = np.random.default_rng(3).normal(size=(8, 3))


SMALL = gd.LinearFeatures(lambda s, a: MIX[2 * s + a])


TABLE = gd.Tabular(4, 2)


@pytest.mark.parametrize("discount", [0.5, 1.0])
@pytest.mark.parametrize("seed", range(3))
class TestRobustness:
    """Each is right if its own class is, whatever the discriminators, so long as these tell its members apart."""

    def case(self, seed):
        case = problem(seed)
        case.starts = np.arange(4)
        return case

    def test_mwl_with_the_true_ratio_in_its_span(self, seed, discount):
        case = self.case(seed)
        functions = self.features(case, discount, ratio=True)
        value = gd.MWL(discount, TABLE).answer(gd.Problem(case.log(), case.policy, functions, 0)).value
        assert value == pytest.approx(case.truth(discount), abs=1e-9)

    def test_mql_with_the_true_q_in_its_span(self, seed, discount):
        case = self.case(seed)
        functions = self.features(case, discount, ratio=False)
        value = gd.MQL(discount, TABLE).answer(gd.Problem(case.log(), case.policy, functions, 0)).value
        assert value == pytest.approx(case.truth(discount), abs=1e-9)

    def test_neither_is_right_without(self, seed, discount):
        case = self.case(seed)
        for estimator in (gd.MWL(discount, TABLE), gd.MQL(discount, TABLE)):
            value = estimator.answer(gd.Problem(case.log(), case.policy, SMALL, 0)).value
            assert abs(value - case.truth(discount)) > 1e-4

    def features(self, case, discount, ratio):
        mdp = gd.mdp.TabularMDP(case.transition, case.reward, np.bincount(case.starts, minlength=4) / len(case.starts))
        true = mdp.ratio(case.target, discount, case.data_dist) if ratio else mdp.q_values(case.target, discount)
        columns = np.column_stack([true.ravel(), MIX[:, 0]])
        return gd.LinearFeatures(lambda s, a: columns[2 * s + a])


@pytest.mark.parametrize("make", [gd.MWL, gd.MQL])
@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_a_discriminator_with_too_few_features_is_refused(make, discount):
    case = problem(0)
    with pytest.raises(gd.InputError, match="at least as many"):
        make(discount, SMALL).answer(gd.Problem(case.log(), case.policy, TABLE, 0))


@pytest.mark.parametrize("make", [gd.MWL, gd.MQL])
@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize("ending", [False, True])
def test_shares_are_derivatives_for_two_classes(make, discount, ending):
    """Where violations are left over, so that every term of the influence function counts."""
    case, rng = problem(4, ending), np.random.default_rng(4)
    data = case.sample(150, rng, weights=rng.uniform(0.5, 1.5, 150))
    for estimator in (make(discount, TABLE), gd.MWL(discount, TABLE, self_normalize=True)):
        shares = estimator.answer(gd.Problem(data, case.policy, SMALL, 0)).influence
        for row in range(5):
            step = 1e-4 * np.eye(150)[row]
            up, down = (
                estimator.answer(
                    gd.Problem(replace(data, weights=data.weights + s * step), case.policy, SMALL, 0)
                ).value
                for s in (1, -1)
            )
            size = np.abs(known(shares).rows).max()
            assert (up - down) / 2e-4 * known(data.weights)[row] == pytest.approx(
                known(shares).rows[row], abs=1e-5 * size
            )
        if discount == 1 and not ending:
            assert known(shares).initial is None
            continue
        many = np.tile(known(data.initial_states), 50)
        base = estimator.answer(gd.Problem(replace(data, initial_states=many), case.policy, SMALL, 0)).value
        for start in range(3):
            one_more = replace(data, initial_states=np.append(many, known(data.initial_states)[start]))
            moved = 50 * (estimator.answer(gd.Problem(one_more, case.policy, SMALL, 0)).value - base)
            assert moved == pytest.approx(
                known(known(shares).initial)[start], abs=2e-3 * np.abs(known(known(shares).initial)).max()
            )


def test_self_normalised_values_shift_with_the_reward_and_others_need_not():
    case = problem(1)
    data = case.sample(400, np.random.default_rng(0))
    lifted = replace(data, rewards=data.rewards + 2.0)

    def moved(estimator):
        first, second = (estimator.answer(gd.Problem(log, case.policy, SMALL, 0)).value for log in (data, lifted))
        return second - first

    assert moved(gd.MWL(0.9, TABLE, self_normalize=True)) == pytest.approx(2, abs=1e-9)
    assert moved(gd.MQL(0.9, TABLE)) == pytest.approx(2, abs=1e-9)  # a constant is among Q's features
    assert abs(moved(gd.MWL(0.9, TABLE)) - 2) > 0.1


@pytest.mark.parametrize("estimator", [gd.MWL(0.9, TABLE), gd.MQL(0.9, TABLE)], ids=repr)
def test_the_absorbing_state_weighs_nothing(estimator):
    """In fifty copies of a log the self-loop has a fiftieth of the share it had, and the value is the same."""
    case = problem(2, ending=True)
    data = case.sample(80, np.random.default_rng(1))
    columns = ("states", "actions", "rewards", "next_states", "terminated")
    many = gd.Transitions(
        **{name: np.tile(getattr(data, name), 50) for name in columns}, initial_states=data.initial_states
    )
    values = [estimator.answer(gd.Problem(log, case.policy, SMALL, 0)).value for log in (data, many)]
    assert values[0] == pytest.approx(values[1], abs=1e-9)


def test_mql_at_discount_one_without_a_constant():
    """No parameter is left open then, and ρ takes one more discriminator."""
    case = problem(1)
    bare = gd.LinearFeatures(lambda s, a: MIX[2 * s + a], intercept=False)
    answer = gd.MQL(1.0, TABLE).answer(gd.Problem(case.log(), case.policy, bare, 0))
    s, a, t = case.log().states, case.log().actions, case.log().next_states
    x, following = MIX[2 * s + a], np.einsum("na,nak->nk", case.target[t], MIX.reshape(4, 2, 3)[t])
    weights = case.log().weights
    z = np.eye(8)[2 * s + a] * known(weights)[:, None]
    theta = np.linalg.lstsq(
        z.T @ np.column_stack([x - following, np.ones(len(s))]), z.T @ case.log().rewards, rcond=None
    )[0]
    assert answer.value == pytest.approx(theta[-1], abs=1e-10) and answer.status.ok
    with pytest.raises(gd.InputError, match="a constant feature"):
        gd.MQL(1.0).answer(gd.Problem(case.log(), case.policy, bare, 0))


@pytest.mark.parametrize("kernel", [gd.RandomFourier(60, seed=3), gd.Nystrom(60, seed=3)], ids=repr)
def test_kernel_discriminators(kernel):
    """A smooth ratio and Q over continuous states, against LSTDQ with many features."""
    rng = np.random.default_rng(0)
    states = rng.uniform(-1, 1, size=(4000, 1))
    actions = rng.integers(0, 2, size=4000)
    moved = np.clip(0.8 * states[:, 0] + 0.2 * (2 * actions - 1) + 0.05 * rng.normal(size=4000), -1, 1)[:, None]
    data = gd.Transitions(states, actions, np.cos(2 * states[:, 0]), moved, rng.uniform(-1, 1, size=(500, 1)))
    policy = gd.DiscretePolicy(lambda s: np.column_stack([0.5 - 0.3 * s[:, 0], 0.5 + 0.3 * s[:, 0]]), 2)
    functions = gd.RandomFourier(40, bandwidth=1.0)
    reference = gd.evaluate(data, policy, gd.LSTDQ(0.8), functions=functions)
    for make in (gd.MWL, gd.MQL):
        found = gd.evaluate(data, policy, make(0.8, kernel, rank_tolerance=1e-6), functions=functions)
        assert abs(found.value - reference.value) < 4 * known(reference.standard_error)
        assert known(found.standard_error) < 3 * known(reference.standard_error)


@pytest.mark.parametrize("make", [gd.MWL, gd.MQL])
def test_intervals_cover_the_fixed_point_of_two_classes(make):
    """Not the target's value, which these features miss, but what the estimator would say of the population."""
    case, rng = problem(5), np.random.default_rng(5)
    estimator, hits = make(0.8, TABLE), 0
    fixed_point = estimator.answer(gd.Problem(case.log(), case.policy, SMALL, 0)).value
    for _ in range(200):
        data = case.sample(800, rng)
        hits += covers(estimator.answer(gd.Problem(data, case.policy, SMALL)), data, fixed_point)
    assert 0.88 <= hits / 200 <= 0.99
