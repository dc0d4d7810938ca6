"""`posterior`: against exact posteriors, against frequentist intervals, and what it refuses."""

import pickle

import numpy as np
import pytest
from scipy import stats

import gradientdice as gd
from problems import TARGET, UNIFORM, known, random_problem, take


def bandit(counts, wins):
    """One state; for each action, how often it was taken and how often that paid 1."""
    actions = np.repeat(np.arange(len(counts)), counts)
    rewards = np.concatenate([np.arange(count) < won for count, won in zip(counts, wins, strict=True)])
    return gd.Transitions(np.zeros(len(actions), dtype=int), actions, rewards.astype(float), None)


def arms(count):
    return {str(arm): gd.TabularPolicy(np.eye(count)[[arm]]) for arm in range(count)}


def test_a_bandits_posterior_is_beta():
    counts, wins = [12, 30, 5], [7, 20, 4]
    found = gd.posterior(bandit(counts, wins), arms(3), discount=0.0, model="dirichlet", draws=20_000)
    for arm, posterior in enumerate(found.values()):
        exact = stats.beta(wins[arm] + 0.5, counts[arm] - wins[arm] + 0.5)
        assert stats.kstest(posterior.draws, exact.cdf).pvalue > 1e-3
        np.testing.assert_allclose(posterior.interval(0.9), exact.interval(0.9), atol=0.02)
        np.testing.assert_allclose(posterior.probability(above=0.6), exact.sf(0.6), atol=0.015)
    # The probability that the second arm is the best, by quadrature over three Betas.
    grid = np.linspace(0, 1, 20_001)
    betas = [stats.beta(won + 0.5, count - won + 0.5) for count, won in zip(counts, wins, strict=True)]
    others = np.prod([betas[arm].cdf(grid) for arm in (0, 2)], axis=0)
    np.testing.assert_allclose(
        found.probability_best["1"], np.sum(np.diff(betas[1].cdf(grid)) * others[1:]), atol=0.015
    )
    assert sum(found.probability_best.values()) == pytest.approx(1)


def test_the_bootstrap_of_a_bandit_is_a_beta_without_prior():
    found = gd.posterior(bandit([12, 30], [7, 20]), arms(2), discount=0.0, draws=20_000)
    for posterior, (won, lost) in zip(found.values(), [(7, 5), (20, 10)], strict=True):
        assert stats.kstest(posterior.draws, stats.beta(won, lost).cdf).pvalue > 1e-3


def test_an_arm_that_was_never_pulled_has_its_prior():
    found = gd.posterior(bandit([12, 0], [7, 0]), arms(2), discount=0.0, model="dirichlet", draws=20_000)
    assert stats.kstest(found["1"].draws, stats.beta(0.5, 0.5).cdf).pvalue > 1e-3
    # A stronger prior is nearer to one half.
    strong = gd.posterior(bandit([12, 0], [7, 0]), arms(2), discount=0.0, model="dirichlet", prior=50.0)
    assert strong["1"].standard_deviation < 0.1


def test_amounts_have_a_students_posterior():
    """With a weak prior the mean of normal rewards is Student's about the log's mean."""
    rewards = np.random.default_rng(0).normal(2.0, 3.0, size=200)
    data = gd.Transitions(np.zeros(200, dtype=int), np.zeros(200, dtype=int), rewards, None)
    posterior = gd.posterior(data, gd.TabularPolicy([[1.0]]), discount=0.0, model="dirichlet", draws=20_000)
    exact = stats.t(199, rewards.mean(), stats.sem(rewards))
    np.testing.assert_allclose(posterior.interval(), exact.interval(0.95), atol=0.05 * exact.std())


@pytest.mark.parametrize("model", ["bootstrap", "dirichlet"])
@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_on_a_large_log_the_posterior_is_the_frequentist_interval(model, discount):
    mdp, target, dist = random_problem(4)
    data = mdp.sample(20_000, dist, np.random.default_rng(0))
    estimate = gd.evaluate(data, gd.TabularPolicy(target), gd.GradientDICE(discount))
    posterior = gd.posterior(data, gd.TabularPolicy(target), discount=discount, model=model, draws=3000)
    assert posterior.value == pytest.approx(estimate.value)
    error, interval = known(estimate.standard_error), known(estimate.interval)
    assert posterior.standard_deviation == pytest.approx(error, rel=0.06)
    assert abs(posterior.mean - estimate.value) < 0.1 * error
    np.testing.assert_allclose(posterior.interval(), interval, atol=0.05 * (interval[1] - interval[0]))


def test_policies_share_the_draws():
    mdp, target, dist = random_problem(4)
    data = mdp.sample(500, dist, np.random.default_rng(0))
    near = 0.98 * target + 0.02 * target[:, ::-1]
    found = gd.posterior(data, {"target": gd.TabularPolicy(target), "near": gd.TabularPolicy(near)}, discount=0.9)
    alone = gd.posterior(data, gd.TabularPolicy(target), discount=0.9)
    np.testing.assert_array_equal(found["target"].draws, alone.draws)
    apart = found.difference("target", "near")
    assert apart.standard_deviation < 0.1 * alone.standard_deviation
    wins = apart.probability(above=0.0)
    assert found.probability_best["target"] == pytest.approx(wins)
    np.testing.assert_allclose(found.ranks["target"], [wins, 1 - wins])
    np.testing.assert_allclose(found.regret["target"], np.maximum(-apart.draws, 0), atol=1e-12)
    assert found.table["policy"].tolist()[0] == max(found, key=lambda name: found[name].mean)


def test_the_first_order_draws_agree_with_the_exact_ones(monkeypatch):
    mdp, target, dist = random_problem(4)
    data = mdp.sample(4000, dist, np.random.default_rng(0))
    exact = gd.posterior(data, gd.TabularPolicy(target), discount=0.9)
    monkeypatch.setattr("gradientdice.evaluation.posterior.draw.MOST_STATES", 0)
    monkeypatch.setattr("gradientdice.evaluation.posterior.draw.MOST_PRODUCT", 0)
    linear = gd.posterior(data, gd.TabularPolicy(target), discount=0.9)
    assert "first order" in linear.model and "exactly" in exact.model
    assert linear.standard_deviation == pytest.approx(exact.standard_deviation, rel=0.06)
    assert linear.mean == pytest.approx(exact.mean, abs=0.2 * exact.standard_deviation)


def test_searched_features_have_first_order_draws():
    rng = np.random.default_rng(0)
    states = rng.normal(size=(400, 1))
    actions = rng.integers(0, 2, 400)
    data = gd.Transitions(states, actions, states[:, 0] + actions, 0.5 * states, initial_states=states[:50])
    policy = gd.DiscretePolicy(lambda at: np.tile([0.2, 0.8], (len(at), 1)), 2)
    estimate = gd.evaluate(data, policy, discount=0.5, effort="quick")
    posterior = gd.posterior(data, policy, discount=0.5, effort="quick")
    assert "first order" in posterior.model
    assert posterior.standard_deviation == pytest.approx(estimate.sampling_error, rel=0.1)


def test_episodes_are_the_units():
    """Rows of one episode that repeat each other say no more than one of them."""
    rng = np.random.default_rng(0)
    rewards = np.repeat(rng.integers(0, 2, 40), 10).astype(float)
    data = gd.Transitions(
        np.zeros(400, dtype=int),
        np.zeros(400, dtype=int),
        rewards,
        np.zeros(400, dtype=int),
        episodes=np.repeat(np.arange(40), 10),
    )
    posterior = gd.posterior(data, gd.TabularPolicy([[1.0]]), discount=1.0)
    assert posterior.standard_deviation == pytest.approx(rewards.std() / np.sqrt(41), rel=0.05)
    assert "40 independent episodes" in str(posterior)


def test_the_same_seed_gives_the_same_draws_and_another_does_not():
    data = bandit([12, 30], [7, 20])
    first, again, other = (gd.posterior(data, arms(2)["0"], discount=0.0, seed=seed).draws for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("model", ["bootstrap", "dirichlet"])
@pytest.mark.parametrize(("size", "verdict"), [(60, "do not trust"), (20_000, "trust")])
def test_a_posterior_has_the_verdict_of_the_estimate(model, size, verdict):
    mdp, target, dist = random_problem(4)
    data, policy = mdp.sample(size, dist, np.random.default_rng(0)), gd.TabularPolicy(target)
    estimate = gd.evaluate(data, policy, discount=0.9)
    found = gd.posterior(data, policy, discount=0.9, model=model, draws=200)
    value = estimate.value if estimate.uncut_value is None else estimate.uncut_value
    assert str(found.verdict) == str(estimate.verdict) == verdict and found.value == value
    assert found.reasons == tuple(estimate.reasons) and bool(found.reasons) == (verdict != "trust")
    lines = str(found).splitlines()
    assert f"verdict                  {verdict}" in lines
    assert [line.split("because")[1].strip() for line in lines if "because" in line] == list(found.reasons)
    assert found.plot().axes[0].get_title(loc="left") == f"verdict: {verdict}"
    again = pickle.loads(pickle.dumps(found))
    assert str(again) == str(found)


def test_the_value_is_not_cut_to_what_the_rewards_allow():
    """The draws are not, so that the value among them is not either."""
    rng = np.random.default_rng(0)
    states, actions = rng.normal(size=(60, 1)), rng.integers(0, 2, 60)
    rewards, following = (states[:, 0] > 1).astype(float), states + rng.normal(size=(60, 1))
    data = gd.Transitions(states, actions, rewards, following, initial_states=[[-2.0]] * 40)
    policy = gd.DiscretePolicy(lambda at: np.tile([0.0, 1.0], (len(at), 1)), 2)
    functions = gd.LinearFeatures(lambda s, a: np.column_stack([np.ones(len(s)), s[:, 0], np.asarray(a).ravel()]))
    estimate = gd.evaluate(data, policy, discount=0.5, functions=functions)
    assert estimate.value == 0 and known(estimate.uncut_value) < -0.1
    found = gd.posterior(data, policy, discount=0.5, functions=functions, draws=100)
    assert found.value == estimate.uncut_value and found.verdict is gd.Verdict.DO_NOT_TRUST


def test_several_posteriors_have_the_worst_verdict_by_name():
    """The second arm was pulled five times."""
    ordered = bandit([3000, 5], [1500, 4])
    mixed = np.random.default_rng(0).permutation(3005)
    found = gd.posterior(take(ordered, mixed), arms(2), discount=0.0, draws=200)
    assert found["0"].verdict is gd.Verdict.TRUST and found["1"].verdict is gd.Verdict.DO_NOT_TRUST
    assert found.verdict is gd.Verdict.DO_NOT_TRUST
    assert found.reasons == tuple(f"1: {reason}" for reason in found["1"].reasons) != ()
    by_name = dict(zip(found.table["policy"], found.table["verdict"], strict=True))
    assert by_name == {"0": "trust", "1": "do not trust"}
    assert f"verdict    do not trust\n  because  {found.reasons[0]}" in str(found)
    left, _ = found.plot().axes
    assert left.get_title(loc="left") == "verdict: do not trust"
    assert {label.get_text() for label in left.get_yticklabels()} == {"0", "1\n(do not trust)"}
    apart = found.difference("0", "1")
    assert apart.verdict is gd.Verdict.DO_NOT_TRUST and apart.reasons == found.reasons
    assert found.difference("0", "0").verdict is gd.Verdict.TRUST


def test_refusals():
    data, policy = bandit([12, 30], [7, 20]), arms(2)["0"]
    with pytest.raises(gd.InputError, match="at least one policy"):
        gd.posterior(data, {}, discount=0.0)
    with pytest.raises(gd.InputError, match='model must be "bootstrap" or "dirichlet"'):
        gd.posterior(data, policy, discount=0.0, model="normal")
    with pytest.raises(gd.InputError, match="draws must be at least 100"):
        gd.posterior(data, policy, discount=0.0, draws=10)
    with pytest.raises(gd.InputError, match="prior must lie in"):
        gd.posterior(data, policy, discount=0.0, prior=0.0)
    with pytest.raises(gd.InputError, match="above= or below="):
        gd.posterior(data, policy, discount=0.0).probability()
    with pytest.raises(gd.InputError, match="There is no policy 'x'"):
        gd.posterior(data, arms(2), discount=0.0).difference("0", "x")
    smooth = gd.Transitions(np.zeros((4, 1)), [0, 1, 0, 1], np.arange(4.0), np.ones((4, 1)))
    uniform = gd.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), 2)
    with pytest.raises(gd.InputError, match="The Dirichlet model is for tables"):
        gd.posterior(smooth, uniform, discount=1.0, model="dirichlet")
    once = gd.Transitions([0, 0], [0, 0], [1.0, 0.0], [0, 0], episodes=[0, 0])
    with pytest.raises(gd.InputError, match="one row or one episode"):
        gd.posterior(once, gd.TabularPolicy([[1.0]]), discount=1.0)
    lone = gd.Transitions([0, 1], [0, 0], [1.0, 0.0], [1, 0])
    for model in ("bootstrap", "dirichlet"):
        with pytest.raises(gd.InputError, match="needs initial states"):
            gd.posterior(lone, gd.TabularPolicy([[1.0], [1.0]]), discount=0.9, model=model)


def test_figures_and_words():
    data = bandit([12, 30, 5], [7, 20, 4])
    found = gd.posterior(data, arms(3), discount=0.0, model="dirichlet", draws=500)
    assert len(found.plot().axes) == 2 and len(found["0"].plot().axes) == 1
    text = str(found)
    assert "probability_best" in text and "Dirichlet over the 2 that the log shows" in text
    assert "500 draws" in str(found["0"])


@pytest.mark.slow
@pytest.mark.parametrize("model", ["bootstrap", "dirichlet"])
def test_the_interval_covers_as_often_as_it_says(model):
    """300 logs of the chain; a posterior with a weak prior has nearly frequentist coverage."""
    mdp = gd.mdp.boyan_chain("continuing")
    truth, hits = mdp.value(TARGET, 0.9), 0
    for seed in range(300):
        data = mdp.sample(2000, UNIFORM, np.random.default_rng(seed))
        low, high = gd.posterior(
            data, gd.TabularPolicy(TARGET), discount=0.9, model=model, draws=1000, seed=seed
        ).interval()
        hits += low < truth < high
    print(model, hits / 300)
    # 300 logs at 95%: two standard errors are 2.5%.
    assert 0.915 <= hits / 300 <= 0.985
