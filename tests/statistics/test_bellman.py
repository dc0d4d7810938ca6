"""The kernel Bellman loss prefers the true Q, and knows its own noise."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.functions.rows import BlockRows
from gradientdice.problem.folds import Folds
from gradientdice.statistics import bellman
from gradientdice.statistics.bellman import KernelBellmanLoss
from gradientdice.statistics.influence import HeldOut
from problems import linear_gaussian, random_problem, take


@pytest.mark.slow
def test_the_loss_prefers_the_true_q_and_is_unbiased_for_it(rng):
    mdp, target, data_dist = random_problem(4)
    data = mdp.sample(20_000, data_dist, rng)
    policy = gd.TabularPolicy(target)
    folds = Folds.create(data, 2, 0)
    judge = KernelBellmanLoss(data, policy, folds)
    q = mdp.q_values(target, 0.9)

    def loss(table):
        v = np.sum(target * table, axis=1)
        td = data.rewards + 0.9 * v[data.next_states] - table[data.states, data.actions]
        return judge(HeldOut(np.ones(20_000), td, np.zeros(20_000), None))[0]

    wrong = [loss(q + size * rng.normal(size=q.shape)) for size in (0.1, 0.3, 1.0)]
    assert loss(q) < wrong[0] < wrong[1] < wrong[2]
    noise = np.array(
        [judge(HeldOut(np.ones(20_000), rng.normal(size=20_000), np.zeros(20_000), None)) for _ in range(40)]
    )
    assert abs(noise[:, 0].mean()) < 4 * noise[:, 0].std() / np.sqrt(40)
    assert noise[:, 1].mean() == pytest.approx(noise[:, 0].std(), rel=0.4), "the measured noise is the real one"


def test_copies_of_rows_do_not_change_the_loss(rng):
    """A copy's residual has the same noise as its original's, which would otherwise be taken for misfit."""
    data, policy, _ = linear_gaussian(500, rng)
    residual = rng.normal(size=500)
    again = np.append(np.arange(500), rng.integers(0, 500, 700))
    copied = take(data, again)
    weighted = take(data, np.arange(500), weights=np.bincount(again))

    def judged(log, residual):
        scores = HeldOut(np.ones(len(log)), residual, np.zeros(len(log)), None)
        return KernelBellmanLoss(log, policy, Folds.create(log, 2, 0))(scores)

    loss, noise = judged(copied, residual[again])
    assert abs(loss) < 3 * noise
    np.testing.assert_allclose((loss, noise), judged(weighted, residual), rtol=1e-4)


def test_the_forms_give_the_judges_loss_of_every_combination(rng):
    data, policy, _ = linear_gaussian(800, rng)
    folds = Folds.create(data, 4, 0)
    judge = KernelBellmanLoss(data, policy, folds)
    residuals = rng.normal(size=(3, 800)) + data.states[:, 0]
    forms, weights = judge.forms(residuals), rng.dirichlet(np.ones(3), size=4)
    combined = np.sum(weights[folds.rows].T * residuals, axis=0)
    expected = judge(HeldOut(np.ones(800), combined, np.zeros(800), None))
    assert forms.loss(weights) == pytest.approx(expected, rel=1e-3)
    same = np.tile([0.2, 0.5, 0.3], (4, 1))
    means = [same[0] @ forms.form(fold) @ same[0] for fold in range(4)]
    # Each is the mean of three folds, and each fold is in three of them; squared noise stays in it.
    noise = sum(same[0] @ own @ same[0] for own in forms.own)
    assert np.sum(means) == pytest.approx(forms.loss(same)[0] + noise, rel=1e-6)


def policy_for(discrete: bool):
    if discrete:
        return gd.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), 2)
    return gd.SamplingPolicy(lambda states, rng: rng.normal(size=(len(states), 2)))


def judge_of(data, policy):
    return KernelBellmanLoss(data, policy, Folds.create(data, 2, 0))


@pytest.mark.parametrize("discrete", [False, True])
def test_the_loss_of_an_input_is_that_of_the_kernel_matrix(rng, discrete):
    """The mean of xᵢ xⱼ k(i, j) over pairs of different rows, for inputs whose mean and variance are known."""
    states = rng.normal(size=(3_000, 3))
    actions = rng.integers(0, 2, 3_000) if discrete else rng.normal(size=(3_000, 2))
    data = gd.Transitions(5 * states + 2, actions, np.zeros(3_000), states)
    policy = policy_for(discrete)
    matrix = np.zeros((3_000, 3_000))
    for kernel in bellman.test_kernels(data, policy):
        rows = kernel.at(data.states, data.actions)
        values = rows.base if isinstance(rows, BlockRows) else rows.values
        matrix += values @ values.T / len(bellman.TEST_BANDWIDTHS)
    if discrete:
        matrix *= actions[:, None] == actions
    np.fill_diagonal(matrix, 0.0)
    inputs = states if discrete else np.column_stack([states, actions])
    expected = np.mean([x @ matrix @ x for x in inputs.T]) / 3_000**2
    judge = judge_of(data, policy)
    assert judge.num_inputs == inputs.shape[1]
    assert judge.of_inputs() == pytest.approx(expected, rel=0.05)


def test_the_loss_of_an_input_does_not_depend_on_the_number_of_rows(rng):
    found = []
    for count in (100, 100, 100, 100, 3_000, 20_000):
        states, actions = rng.normal(size=(count, 6)), rng.normal(size=(count, 2))
        found.append(judge_of(gd.Transitions(states, actions, np.zeros(count), states), policy_for(False)).of_inputs())
    assert np.mean(found[:4]) == pytest.approx(found[5], rel=0.15) and found[4] == pytest.approx(found[5], rel=0.05)


def test_copies_weigh_as_much_in_the_loss_of_an_input_as_weights_do(rng):
    states, actions = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
    data, policy = gd.Transitions(states, actions, np.zeros(400), states), policy_for(True)
    again = np.append(np.arange(400), rng.integers(0, 100, 700))
    weighted = take(data, np.arange(400), weights=np.bincount(again))
    found = judge_of(take(data, again), policy).of_inputs()
    assert found == pytest.approx(judge_of(weighted, policy).of_inputs(), rel=1e-3)
    assert abs(found / judge_of(data, policy).of_inputs() - 1) > 0.02, "and they do matter"
