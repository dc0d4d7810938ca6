"""The kernel Bellman loss prefers the true Q, and knows its own noise."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.inference.bellman import KernelBellmanLoss
from gradientdice.inference.scores import HeldOut
from gradientdice.problem.folds import Folds
from problems import linear_gaussian, random_problem, take


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
