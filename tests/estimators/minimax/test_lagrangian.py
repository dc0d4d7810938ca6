"""The regularised Lagrangian: which value is right under which regulariser, by exact solves, and ζ ≥ 0."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from problems import known
from reference import kernels
from reference.population import problem

Lagrangian, ReadOut = gd.RegularizedLagrangian, gd.ReadOut


TABLE = gd.Tabular(4, 2)


def read(case, *args, **options):
    """The three values (None where the critic's does not apply) and the last answer."""
    values, answer = {}, None
    for read_out in ReadOut:
        if read_out is ReadOut.CRITIC and args[3] == 0:
            continue
        answer = Lagrangian(*args, **options, read_out=read_out).answer(gd.Problem(case.log(), case.policy, TABLE, 0))
        assert answer.status.ok
        values[read_out] = answer.value
    return values, answer


@pytest.mark.parametrize("discount", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ending", [False, True])
class TestWhichValueIsRight:
    """The table in the module's docstring, on whole populations."""

    @pytest.mark.parametrize("reward_weight", [0.0, 1.0])
    @pytest.mark.parametrize("positive", [False, True])
    def test_without_a_critic_regularizer_the_ratio_is_right(self, seed, ending, discount, reward_weight, positive):
        case = problem(seed, ending)
        values, answer = read(case, discount, 0.0, 0.7, reward_weight, positive=positive)
        truth = case.truth(discount)
        assert values[ReadOut.RATIO] == pytest.approx(truth, abs=1e-9)
        assert values[ReadOut.LAGRANGIAN] == pytest.approx(truth, abs=1e-9)
        if reward_weight:
            # The mean of ζ² is over the log: the absorbing state is not regularised. Its row has a share of the weight.
            log = case.log()
            zeta = known(known(answer).influence).ratio
            share = 0.9 if ending and discount < 1 else 1.0
            square = share * np.average(zeta**2, weights=log.weights)
            assert values[ReadOut.CRITIC] == pytest.approx(truth - 0.7 * square, abs=1e-8)

    def test_without_a_ratio_regularizer_the_critic_is_right(self, seed, ending, discount):
        case = problem(seed, ending)
        truth, log = case.truth(discount), case.log()
        for norm in (True,) if discount == 1 else (False, True):
            values, answer = read(case, discount, 0.6, 0.0, 1.0, norm=norm)
            assert values[ReadOut.CRITIC] == pytest.approx(truth, abs=1e-9)
            assert values[ReadOut.LAGRANGIAN] == pytest.approx(truth, abs=1e-9)
            nu = known(known(answer).solution).critic_params[log.states * 2 + log.actions]
            share = 0.9 if ending and discount < 1 else 1.0
            square = share * np.average(nu**2, weights=log.weights)
            assert values[ReadOut.RATIO] == pytest.approx(truth + 0.6 * square, abs=1e-8)

    def test_without_rewards_and_ratio_regularizer_the_ratio_is_right(self, seed, ending, discount):
        case = problem(seed, ending)
        for positive in (False, True):
            values, answer = read(case, discount, 0.6, 0.0, 0.0, positive=positive)
            assert values[ReadOut.RATIO] == pytest.approx(case.truth(discount), abs=1e-9)
            assert values[ReadOut.LAGRANGIAN] == pytest.approx(case.truth(discount), abs=1e-9)
            np.testing.assert_allclose(known(known(answer).solution).critic_params, 0, atol=1e-8)

    @pytest.mark.parametrize("reward_weight", [0.0, 1.0])
    def test_with_both_all_are_off(self, seed, ending, discount, reward_weight):
        case = problem(seed, ending)
        values, answer = read(case, discount, 0.6, 0.7, reward_weight)
        assert all(abs(value - case.truth(discount)) > 1e-5 for value in values.values())
        assert any("bias" in caution for caution in known(answer).cautions)


@pytest.mark.parametrize("discount", [0.5, 1.0])
def test_a_binding_bound_takes_the_critics_rightness_away(discount):
    bound = 0
    for seed in range(6):
        case = problem(seed)
        free, _ = read(case, discount, 3.0, 0.0, 1.0)
        values, answer = read(case, discount, 3.0, 0.0, 1.0, positive=True)
        assert free[ReadOut.CRITIC] == pytest.approx(case.truth(discount), abs=1e-9)
        if (known(answer).ratio == 0).any():
            bound += 1
            assert abs(values[ReadOut.CRITIC] - case.truth(discount)) > 1e-4
            assert any("bias" in caution for caution in known(answer).cautions)
    assert bound >= 3


@pytest.mark.parametrize("discount", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("alphas", [(3.0, 0.0, 1.0), (3.0, 0.2, 1.0), (0.5, 0.0, 1.0), (2.0, 0.05, 0.0)])
@pytest.mark.parametrize("seed", range(2))
def test_positive_ratios_against_a_general_solver(alphas: tuple[float, float, float], discount, seed):
    case, rng = problem(seed), np.random.default_rng(seed)
    data = case.sample(300, rng, weights=rng.uniform(0.5, 1.5, 300))
    answer = Lagrangian(discount, *alphas, positive=True).answer(gd.Problem(data, case.policy, TABLE, 0))
    x, x_next, x0, rewards, weights = kernels.tables(data, case.target, discount)
    expected = kernels.positive_lagrangian(x, x_next, x0, rewards, weights, discount, *alphas, np.ones(len(x)))
    assert answer.status.ok and known(answer.ratio).min() >= -1e-12
    assert answer.value == pytest.approx(expected, abs=2e-6)
    assert answer.evidence.mean_ratio == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize("ending", [False, True])
@pytest.mark.parametrize("read_out", ReadOut)
@pytest.mark.parametrize("options", [(0.5, 0.8, 1.0, False), (0.5, 0.0, 1.0, True), (0.5, 0.8, 1.0, True)])
def test_shares_are_derivatives_of_every_read_out(options, read_out, ending, discount):
    case, rng = problem(4, ending), np.random.default_rng(4)
    data = case.sample(200, rng, weights=rng.uniform(0.5, 1.5, 200))
    mix = rng.normal(size=(8, 3))
    functions = TABLE if options[3] else gd.LinearFeatures(lambda s, a: mix[2 * s + a], intercept=False)
    estimator = Lagrangian(discount, *options, read_out=read_out)
    shares = estimator.answer(gd.Problem(data, case.policy, functions, 0)).influence
    size = np.abs(known(shares).rows).max()
    for row in range(4):
        step = 1e-4 * np.eye(200)[row]
        up, down = (
            estimator.answer(
                gd.Problem(replace(data, weights=data.weights + s * step), case.policy, functions, 0)
            ).value
            for s in (1, -1)
        )
        assert (up - down) / 2e-4 * known(data.weights)[row] == pytest.approx(known(shares).rows[row], abs=2e-5 * size)
    if known(shares).initial is not None:
        many = np.tile(known(data.initial_states), 100)
        base = estimator.answer(gd.Problem(replace(data, initial_states=many), case.policy, functions, 0)).value
        for start in range(2):
            one_more = replace(data, initial_states=np.append(many, known(data.initial_states)[start]))
            moved = 100 * (estimator.answer(gd.Problem(one_more, case.policy, functions, 0)).value - base)
            assert moved == pytest.approx(
                known(known(shares).initial)[start], abs=2e-2 * np.abs(known(known(shares).initial)).max()
            )


def test_several_closed_classes_are_told():
    """At discount 1 without α_ζ the ratio is not unique; with it the least one is, and its norm is 1."""
    transition = np.zeros((2, 1, 2))
    transition[0, 0, 0] = transition[1, 0, 1] = 1
    mdp = gd.mdp.TabularMDP(transition, np.array([[1.0], [0.0]]), np.array([0.5, 0.5]))
    data = mdp.sample(50, np.array([[0.5], [0.5]]), np.random.default_rng(0))
    policy = gd.TabularPolicy(np.ones((2, 1)))
    open_one = Lagrangian.gradient_dice(1.0).answer(gd.Problem(data, policy, gd.Tabular(2, 1), 0))
    assert open_one.status is gd.Status.SINGULAR
    settled = Lagrangian(1.0, 0.0, 1.0, 0.0).answer(gd.Problem(data, policy, gd.Tabular(2, 1), 0))
    assert settled.evidence.mean_ratio == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(known(settled.ratio), 1, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"reward_weight": 0.5}, "0 or 1"),
        ({"reward_weight": 0.0, "read_out": ReadOut.CRITIC}, "RATIO"),
        ({"read_out": "primal"}, "ReadOut"),
        ({"ratio_regularizer": np.inf}, "finite"),
        ({"critic_regularizer": np.inf}, "finite"),
    ],
)
def test_options_are_checked(options, match):
    with pytest.raises(gd.InputError, match=match):
        Lagrangian(0.9, **options)
