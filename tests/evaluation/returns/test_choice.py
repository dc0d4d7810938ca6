"""Weighted episodes or simulated paths: what `return_distribution` chooses, why, and the verdict of each."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.default.automatic import Automatic
from gradientdice.estimators.returns.points import StepFunction
from gradientdice.evaluation.returns.result import ReturnDistribution
from problems import known, ladder, loop, take


def pole(width=9, slip=0.1):
    """A pole at one of several angles: a push moves it to its side, or slips; over when it falls. Each step pays 1."""
    end = width
    transition, reward = np.zeros((width + 1, 2, width + 1)), np.ones((width + 1, 2))
    transition[end, :, end], reward[end] = 1.0, 0.0
    for angle in range(width):
        for action, push in enumerate((-1, 1)):
            for moved, chance in ((push, 1 - slip), (-push, slip)):
                then = angle + moved
                transition[angle, action, then if 0 <= then < width else end] += chance
    upright = width // 2
    # The target pushes towards upright.
    target = np.array([[0.1, 0.9] if a < upright else [0.9, 0.1] if a > upright else [0.5, 0.5] for a in range(end)])
    mdp = gd.mdp.TabularMDP(transition, reward, np.eye(width + 1)[upright])
    return mdp, np.vstack([target, [[0.5, 0.5]]]), end


def mean_return(mdp, target, discount, steps):
    """The exact mean of Σ γᵗ r_t over so many steps."""
    follow = np.einsum("sa,san->sn", target, mdp.transition)
    paid, at, total = (target * mdp.reward).sum(axis=1), mdp.initial, 0.0
    for step in range(steps):
        total, at = total + discount**step * at @ paid, at @ follow
    return float(total)


def uniform_log(mdp, end, episodes=500, steps=200):
    return mdp.rollout(np.full((end + 1, 2), 0.5), episodes, steps, np.random.default_rng(0), terminal=end)


@pytest.mark.parametrize(("discount", "horizon"), [(1.0, 200), (0.99, None)])
def test_a_few_effective_episodes_are_not_the_answer(discount, horizon):
    """A uniform behaviour lets the pole fall after some 25 steps, and the target keeps it up for thousands."""
    mdp, target, end = pole()
    data, policy = uniform_log(mdp, end), gd.TabularPolicy(target)
    truth = mean_return(mdp, target, discount, horizon or 3000)
    weighted = gd.return_distribution(data, policy, discount, horizon=horizon, source="episodes", method="weighted")
    assert weighted.effective_episodes < 10
    assert truth > 4 * weighted.mean and truth > 3 * known(weighted.interval("mean"))[1]
    assert weighted.verdict is gd.Verdict.DO_NOT_TRUST
    assert any("effective number of episodes is" in reason for reason in weighted.reasons)
    assert "verdict                 do not trust\n  because               effective number" in str(weighted)
    found = gd.return_distribution(data, policy, discount, horizon=horizon)
    assert found.source == "model" and found.verdict is gd.Verdict.TRUST
    assert found.mean == pytest.approx(truth, rel=0.02)
    effective = f"{weighted.effective_episodes:.3g}"
    assert found.notes[0] == (
        f"simulated in a model: the weighted episodes would be worth {effective} episodes of the policy itself, and 30 "
        "are needed"
    )
    assert found.notes[0] in str(found) and "verdict                 trust" in str(found)
    # An explicit source is obeyed.
    obeyed = gd.return_distribution(data, policy, discount, horizon=horizon, source="episodes")
    assert obeyed.source == "episodes" and obeyed.verdict is gd.Verdict.DO_NOT_TRUST


def test_enough_effective_episodes_are_the_answer():
    mdp, target, behavior, (end,) = ladder(0)
    data = mdp.rollout(behavior, 2000, 10, np.random.default_rng(0), terminal=end)
    found = gd.return_distribution(data, gd.TabularPolicy(target), 0.9)
    asked = gd.return_distribution(data, gd.TabularPolicy(target), 0.9, source="episodes")
    assert found.source == "episodes" and found.effective_episodes == asked.effective_episodes > 200
    np.testing.assert_array_equal(found.function.cdf, asked.function.cdf)
    assert found.verdict is gd.Verdict.TRUST and found.reasons == ()
    assert found.notes[0].startswith("the weighted episodes are worth") and not asked.notes


@pytest.mark.parametrize(("episodes", "verdict"), [(300, "trust"), (100, "caution"), (20, "do not trust")])
def test_the_verdict_of_weighted_episodes_has_the_thresholds_of_its_page(episodes, verdict):
    """The target logged the data, so that every episode is worth one."""
    mdp, target, _, (end,) = ladder(0)
    data = mdp.rollout(target, episodes, 10, np.random.default_rng(1), terminal=end)
    found = gd.return_distribution(data, gd.TabularPolicy(target), 1.0, source="episodes", method="weighted")
    (check,) = [check for check in found.checks if check.name == "effective number of episodes"]
    assert check.value == pytest.approx(episodes) and str(check.verdict) == verdict
    assert (check.caution, check.alarm) == (200, 30) and str(found.verdict) == verdict


def test_checks_of_the_log_are_part_of_the_verdict():
    """A log that repeats itself has copies, which the effective number does not see."""
    mdp, target, _, (end,) = ladder(0)
    rows = np.random.default_rng(0)
    data = mdp.rollout(target, 300, 10, rows, terminal=end)
    data = replace(data, rewards=data.rewards + rows.normal(size=len(data)))
    twice = {
        name: np.concatenate([column, column])
        for name in ("states", "actions", "rewards", "next_states", "terminated", "truncated", "behavior_log_probs")
        if (column := getattr(data, name)) is not None
    }
    numbers = known(data.episodes)
    doubled = gd.Transitions(**twice, episodes=np.concatenate([numbers, numbers + numbers.max() + 1]))
    found = gd.return_distribution(doubled, gd.TabularPolicy(target), 1.0, method="weighted")
    assert found.effective_episodes == pytest.approx(600)
    assert [check.name for check in found.checks if check.verdict is gd.Verdict.CAUTION] == ["rows that are copies"]
    assert found.verdict is gd.Verdict.CAUTION and "copies" in found.reasons[0]


def test_probabilities_that_cannot_be_right_are_a_caution():
    mdp, target, behavior, (end,) = ladder(0)
    data = mdp.rollout(behavior, 2000, 10, np.random.default_rng(0), terminal=end)
    wrong = replace(data, behavior_log_probs=known(data.behavior_log_probs) - 0.2)
    found = gd.return_distribution(wrong, gd.TabularPolicy(target), 0.9)
    assert found.verdict is gd.Verdict.CAUTION and "importance ratios average" in found.cautions[0]


def test_cut_episodes_at_discount_1_are_simulated():
    mdp, target, end = pole(13, 0.2)
    data, policy = uniform_log(mdp, end, steps=100), gd.TabularPolicy(target)
    assert 10 < known(data.truncated).sum() < 250
    found = gd.return_distribution(data, policy, 1.0)
    asked = gd.return_distribution(data, policy, 1.0, source="model")
    np.testing.assert_array_equal(found.function.cdf, asked.function.cdf)
    assert "time limits cut episodes, whose totals are not known" in found.notes[0] and not asked.notes
    with pytest.raises(gd.InputError, match='source="model"'):
        gd.return_distribution(data, policy, 1.0, source="episodes")


def test_where_no_model_can_answer_episodes_are_weighted_or_refused_as_before(monkeypatch):
    mdp, target, end = pole()
    data, policy = uniform_log(mdp, end), gd.TabularPolicy(target)
    wider, its_target, its_end = pole(13, 0.2)
    cut = uniform_log(wider, its_end, steps=100)

    def refused(*given):
        raise gd.InputError("There is no model today.")

    asked = gd.return_distribution(data, policy, 0.9, source="episodes")
    monkeypatch.setattr("gradientdice.evaluation.returns.distribution._in_the_log", refused)
    found = gd.return_distribution(data, policy, 0.9)
    assert found.source == "episodes" and found.verdict is gd.Verdict.DO_NOT_TRUST
    np.testing.assert_array_equal(found.function.cdf, asked.function.cdf)
    assert found.notes[0].endswith("30 are needed, but: There is no model today.")
    with pytest.raises(gd.InputError, match="at discount 1 a return is the total until the end, and .* have none"):
        gd.return_distribution(cut, gd.TabularPolicy(its_target), 1.0)


def test_a_policy_that_no_episode_follows_is_simulated():
    """All episodes begin with the action that the target never takes there, so that all weights are 0."""
    mdp, target, end = pole(3)
    data = uniform_log(mdp, end, episodes=40, steps=60)
    began = data.actions[known(data.first_rows)] == 0
    left = take(data, np.flatnonzero(began[known(data.episodes)]))
    target[1] = [0.0, 1.0]
    with pytest.raises(gd.InputError, match="all 0"):
        gd.return_distribution(left, gd.TabularPolicy(target), 0.9, source="episodes")
    found = gd.return_distribution(left, gd.TabularPolicy(target), 0.9)
    assert found.source == "model" and "worth 0 episodes" in found.notes[0]


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_simulated_paths_have_the_verdict_of_the_estimate(discount):
    mdp, target, behavior, (end,) = ladder(0)
    for episodes in (30, 3000):
        data = mdp.rollout(behavior, episodes, 10, np.random.default_rng(0), terminal=end)
        found = gd.return_distribution(data, gd.TabularPolicy(target), discount, source="model")
        estimate = gd.evaluate(data, gd.TabularPolicy(target), discount=discount)
        assert found.verdict is estimate.verdict and set(estimate.reasons) <= set(found.reasons)
        own = [check.name for check in found.checks if check not in estimate.checks]
        assert own == (["simulated mean against the estimate"] if discount < 1 else [])
    assert found.verdict is gd.Verdict.TRUST


def test_a_simulated_mean_away_from_the_estimate_is_an_alarm(monkeypatch):
    """The estimate's interval and three standard errors of the simulation are what the mean may differ by."""
    mdp, target, behavior, (end,) = ladder(0)
    data, policy = mdp.rollout(behavior, 3000, 10, np.random.default_rng(0), terminal=end), gd.TabularPolicy(target)
    estimate = gd.evaluate(data, policy, discount=0.9)
    right = gd.return_distribution(data, policy, 0.9, source="model")
    half = (known(estimate.interval)[1] - estimate.value) / 0.1
    answer = Automatic.answer

    def shifted(by):
        def other(self, problem, solver=None):
            found = answer(self, problem, solver)
            return replace(found, value=found.value - 0.1 * by)

        return other

    figures = []
    for by, verdict in ((0.5 * half, gd.Verdict.TRUST), (5 * half, gd.Verdict.DO_NOT_TRUST)):
        with monkeypatch.context() as patched:
            patched.setattr(Automatic, "answer", shifted(by))
            found = gd.return_distribution(data, policy, 0.9, source="model")
        assert found.mean == right.mean and found.verdict is verdict
        assert found.checks[-1].name == "simulated mean against the estimate" and found.checks[-1].verdict is verdict
        figures.append(found.checks[-1].value)
    assert figures[0] < 1 < figures[1]


def test_paths_that_do_not_end_are_a_caution():
    """The target never falls, and a total until the end is not known after any number of steps."""
    mdp, target, end = pole(9, 0.0)
    target = np.eye(2)[target.argmax(axis=1)]
    data = uniform_log(mdp, end, episodes=400)
    found = gd.return_distribution(data, gd.TabularPolicy(target), 1.0, horizon=None, source="model")
    assert found.verdict is not gd.Verdict.TRUST
    assert any(own.startswith("100% of the paths had not ended when they were left") for own in found.cautions)
    whole = gd.return_distribution(data, gd.TabularPolicy(target), 0.9, source="model")
    assert not whole.cautions, "after 88 steps what is left counts 1e-4"


def test_a_result_without_checks_and_with_a_caution():
    plain = ReturnDistribution(StepFunction(np.array([1.0]), np.array([1.0])), 0.9, None, 0.95, "model", "", 1, 1.0)
    assert plain.verdict is gd.Verdict.TRUST and plain.reasons == ()
    doubted = replace(plain, cautions=("look",))
    assert doubted.verdict is gd.Verdict.CAUTION and doubted.reasons == ("look",)


@pytest.mark.parametrize("source", ["episodes", "model"])
def test_a_pickled_distribution_says_the_same(source):
    mdp, target, behavior, _ = loop(1)
    data = mdp.rollout(behavior, 100, 5, np.random.default_rng(0))
    found = gd.return_distribution(data, gd.TabularPolicy(target), 0.8, source=source)
    again = pickle.loads(pickle.dumps(found))
    assert str(again) == str(found) and again.checks == found.checks and again.verdict is found.verdict
    assert f"verdict: {found.verdict}" in found.plot().axes[0].get_title(loc="left")


@pytest.mark.slow
def test_the_learned_model_is_the_one_of_the_estimate(monkeypatch):
    """Dynamics are learned once, for the paths and for the estimate that gives the verdict."""
    from gradientdice.default.model import values
    from gradientdice.default.model.learning import learn_dynamics as learn

    learned = []
    monkeypatch.setattr(values, "learn_dynamics", lambda *given: (learned.append(given[2]), learn(*given))[1])
    rng = np.random.default_rng(0)
    states, actions = rng.normal(size=(600, 1)), rng.integers(0, 2, 600)
    following = 0.5 * states + actions[:, None] + 0.1 * rng.normal(size=(600, 1))
    data = gd.Transitions(states, actions, states[:, 0], following, initial_states=rng.normal(size=(200, 1)))
    push = gd.DiscretePolicy(lambda at: np.tile([0.2, 0.8], (len(at), 1)), 2)
    found = gd.return_distribution(data, push, 0.6)
    assert len(learned) == 1 and learned[0].count == 2
    # E[s_t] = 0.8 · 2 (1 − 2⁻ᵗ), and Σ γᵗ E[s_t] = 1.6 (1/0.4 − 1/0.7).
    assert found.mean == pytest.approx(1.6 * (1 / 0.4 - 1 / 0.7), abs=0.15)
    estimate = gd.evaluate(data, push, discount=0.6)
    names = [check.name for check in found.checks]
    assert names == [*(check.name for check in estimate.checks), "simulated mean against the estimate"]
    assert [check.value for check in found.checks[:-1]] == pytest.approx([check.value for check in estimate.checks])
