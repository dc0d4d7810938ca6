"""Cross-fitting, the doubly robust estimate, selection without truth, and the default for continuous states."""

import numpy as np
import pytest

import gradientdice as gd
from conftest import random_problem
from gradientdice.functions.stream import LogDesign
from gradientdice.inference.automatic import automatic
from gradientdice.inference.doubly_robust import doubly_robust
from gradientdice.inference.folds import Folds, HeldOut, fold_fits, fold_moments, held_out
from gradientdice.inference.intervals import independent_shares, standard_error
from gradientdice.inference.selection import KernelBellmanLoss
from test_moments import episodic_problem


def cross_fit(data, policy, functions, discount, seed=0):
    log, folds = LogDesign(data, policy, functions), Folds.create(data, 4, seed)
    (fits,) = fold_fits(fold_moments(log, folds), [gd.GradientDICE(discount)], gd.ClosedForm())
    return log, folds, fits, held_out(log, folds, [fits])[0]


@pytest.mark.parametrize("discount", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("lam", [0.3, 1.0])
def test_the_adjoint_is_the_q_function(problem, discount, lam):
    """x·p + λvᵀq/(1−γ) = Q with exact moments of a table; at discount 1, up to the constant that Q there has free."""
    mdp, target, data_dist = problem
    fit = gd.ClosedForm().fit(gd.GradientDICE(discount, lam), gd.Moments.exact(mdp, target, np.eye(10), data_dist))
    q = mdp.q_values(target, discount).ravel()
    if discount < 1:
        np.testing.assert_allclose(fit.adjoint.critic + fit.adjoint.norm / (1 - discount), q, atol=1e-9)
    else:
        shifted = fit.adjoint.critic - q
        np.testing.assert_allclose(shifted, shifted.mean(), atol=1e-9)
        assert fit.adjoint.norm == pytest.approx(mdp.value(target, 1.0), abs=1e-10)


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_it_is_right_with_termination(discount, rng):
    mdp, target, transition = episodic_problem(3)
    n = 20_000
    s, a = rng.integers(0, 6, n), rng.integers(0, 2, n)
    cumulative = np.cumsum(transition[s, a], axis=1)
    t = (rng.random(n)[:, None] > cumulative).sum(axis=1)
    starts = rng.choice(7, size=n, p=mdp.initial)
    data = gd.Transitions(
        s, a, mdp.reward[s, a] + rng.normal(size=n), np.where(t == 6, 0, t), starts, terminated=t == 6
    )
    policy = gd.TabularPolicy(target[:6])
    log, folds, fits, scores = cross_fit(data, policy, gd.Tabular(6, 2), discount)
    answer = doubly_robust(log, fits, scores)
    error = standard_error(independent_shares(answer.shares, data))
    inner = transition[:6, :, :6] + transition[:6, :, 6:] * mdp.initial[:6]
    truth = (
        mdp.value(target, discount)
        if discount < 1
        else gd.mdp.TabularMDP(inner, mdp.reward[:6], mdp.initial[:6]).value(target[:6], 1.0)
    )
    assert abs(answer.value - truth) < 4 * error
    plain = gd.evaluate(data, policy, discount=discount)
    assert answer.value == pytest.approx(plain.value, abs=0.3 * error) or abs(answer.value - plain.value) < error
    assert error == pytest.approx(plain.standard_error, rel=0.1)
    residual = scores.residual.mean()
    assert abs(residual) < 5 * scores.residual.std() / np.sqrt(n), "held-out Bellman residuals average to zero"


def test_folds_keep_episodes_together(rng):
    mdp, target, _ = random_problem(0)
    data = mdp.rollout(np.full((5, 2), 0.5), episodes=20, horizon=7, rng=rng)
    folds = Folds.create(data, 4, 0)
    by_episode = folds.rows.reshape(20, 7)
    assert (by_episode == by_episode[:, :1]).all() and (folds.initial == by_episode[:, 0]).all()
    assert np.bincount(by_episode[:, 0]).tolist() == [5, 5, 5, 5]


def test_a_fit_never_sees_its_own_fold(rng):
    """Changing the rewards of one fold changes no other fold's Q on that fold."""
    mdp, target, data_dist = random_problem(0)
    data = mdp.sample(2000, data_dist, rng)
    policy, functions = gd.TabularPolicy(target), gd.Tabular(5, 2)
    _, folds, _, before = cross_fit(data, policy, functions, 0.9)
    from dataclasses import replace

    moved = np.where(folds.rows == 1, 100.0, 0.0)
    _, _, _, after = cross_fit(replace(data, rewards=data.rewards + moved), policy, functions, 0.9)
    own = folds.rows == 1
    np.testing.assert_allclose(after.residual[own] - moved[own], before.residual[own], atol=1e-8)


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


def linear_gaussian(n, rng, gain=0.6):
    """s' = 0.8s + a + noise under a = −gain·s + noise, reward −s²: the discounted value is a geometric series."""
    s = rng.normal(0, 1.5, size=n)
    a = -0.3 * s + rng.normal(size=n)
    following = 0.8 * s + a + 0.5 * rng.normal(size=n)
    starts = rng.normal(1.0, 0.5, size=2000)
    data = gd.Transitions(s[:, None], a[:, None], -(s**2), following[:, None], starts[:, None])
    policy = gd.SamplingPolicy(lambda states, rng: -gain * states + 0.2 * rng.normal(size=states.shape))
    square, noise, total, weight = 1.25, 0.25 + 0.04, 0.0, 0.1
    for _ in range(400):
        total -= weight * square
        square, weight = (0.8 - gain) ** 2 * square + noise, 0.9 * weight
    return data, policy, total


def test_the_default_answers_a_continuous_problem_with_nothing_tuned():
    data, policy, truth = linear_gaussian(6000, np.random.default_rng(0))
    estimate = gd.evaluate(data, policy, discount=0.9)
    assert estimate.interval[0] < truth < estimate.interval[1]
    behaviour = data.rewards.mean()
    assert abs(estimate.value - truth) < 0.1 * abs(behaviour - truth)
    assert "doubly robust" in estimate.estimator and "RandomFourier" in estimate.functions
    assert any("kernel Bellman loss" in note for note in estimate.notes)
    again = gd.evaluate(data, policy, discount=0.9)
    assert again.value == estimate.value, "the same seed gives the same answer"


def test_the_default_offers_candidates_and_spans_the_plausible_ones():
    data, policy, truth = linear_gaussian(4000, np.random.default_rng(1))
    (result,) = automatic(data, policy, [0.9], gd.NormalInterval(), 0.95, 0)
    assert len(result.candidates) >= 4
    best = min(candidate.loss for candidate in result.candidates)
    assert result.chosen.loss <= best + 3 * (result.chosen.noise + max(c.noise for c in result.candidates))
    assert result.chosen in result.spanned
    for candidate in result.spanned:
        assert result.interval[0] <= candidate.interval[0] and candidate.interval[1] <= result.interval[1]


def test_an_estimator_of_ones_own_needs_features_for_continuous_states():
    data, policy, _ = linear_gaussian(100, np.random.default_rng(1))
    with pytest.raises(gd.InputError, match="functions="):
        gd.evaluate(data, policy, gd.GradientDICE(0.9))


def test_the_flow_residual_tells_a_right_ratio_from_a_wrong_one():
    """On a linear Gaussian problem with target = behaviour at discount 1 the ratio is 1; any slope breaks the flow."""
    from gradientdice.inference.flow import flow_residuals

    rng = np.random.default_rng(5)
    state = np.zeros((4001, 1))
    noise = rng.normal(size=4000)
    for step in range(4000):
        state[step + 1] = 0.8 * state[step] + noise[step]
    action = rng.normal(size=(4000, 1))
    data = gd.Transitions(state[:-1], action, state[:-1, 0], state[1:])
    policy = gd.SamplingPolicy(lambda s, r: r.normal(size=(len(s), 1)))
    right, wrong = np.ones(4000), 1 + 0.5 * state[:-1, 0]
    (residual, spread), (bad, _) = flow_residuals(data, policy, 1.0, [right, wrong], 0)
    assert abs(residual) < 4 * spread
    assert bad > 20 * spread
