"""Differences of estimates from one log, and the improvement on the behaviour."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.statistics.intervals import standard_error
from gradientdice.statistics.sources import ErrorSources
from gradientdice_studies.coverage.problems import problems
from problems import known, random_problem


def rollout(seed: int = 0, episodes: int = 60, horizon: int = 25):
    mdp, target, _ = random_problem(3)
    behavior = np.full(target.shape, 1 / target.shape[1])
    return mdp, behavior, mdp.rollout(behavior, episodes, horizon, np.random.default_rng(seed))


def policy(share: float) -> gd.TabularPolicy:
    return gd.TabularPolicy(np.tile([share, 1 - share], (5, 1)))


def test_the_influence_of_a_difference_is_the_difference_of_the_influences():
    _, _, data = rollout()
    one, other = (gd.evaluate(data, policy(share), discount=0.9) for share in (0.2, 0.6))
    found = one - other
    assert found.value == one.value - other.value
    assert isinstance(found.sources, ErrorSources)
    assert np.array_equal(found.sources.units, one.unit_shares[0] - other.unit_shares[0])
    assert found.sampling_error == standard_error([one.unit_shares[0] - other.unit_shares[0]])
    assert found.interval == pytest.approx(tuple(-end for end in (other - one).interval[::-1]))


def test_influence_values_are_how_much_a_row_moves_the_value():
    """Leaving out an episode changes the value by its share, to first order."""
    _, _, data = rollout(episodes=300)
    whole = gd.evaluate(data, policy(0.3), discount=0.9)
    influence = known(whole.influence)
    assert influence.rows.shape == (len(data),) and known(influence.initial).shape == (300,)
    assert influence.rows.sum() == pytest.approx(0, abs=1e-12)
    moved, shares = [], []
    for episode in range(0, 300, 15):
        kept = known(data.episodes) != episode
        part = replace(
            data,
            **{
                name: known(getattr(data, name))[kept]
                for name in ("states", "actions", "rewards", "next_states", "episodes", "behavior_log_probs")
            },
            terminated=None,
            truncated=None,
        )
        moved.append(whole.value - gd.evaluate(part, policy(0.3), discount=0.9).value)
        shares.append(influence.rows[~kept].sum() + known(influence.initial)[episode])
    assert np.corrcoef(moved, shares)[0, 1] > 0.99
    assert np.std(moved) == pytest.approx(np.std(shares), rel=0.05)


def test_the_sampling_error_follows_from_the_unit_shares():
    _, _, data = rollout()
    found = gd.evaluate(data, policy(0.3), discount=0.9)
    (shares,) = found.unit_shares
    count = len(shares)
    assert count == 60
    variance = count / (count - 1) * np.sum((shares - shares.mean()) ** 2)
    assert found.sampling_error == pytest.approx(np.sqrt(variance))


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_a_policy_less_itself_is_nothing_for_sure(discount):
    _, _, data = rollout(episodes=4, horizon=10)  # so few rows that outcomes and steps are missing
    one, again = (gd.evaluate(data, policy(0.3), discount=discount) for _ in range(2))
    found = one - again
    assert found.value == 0 and found.interval == (0, 0) and found.decision == "undecided" and found.sign == 0
    assert "undecided" in str(found)


def test_steps_that_were_never_logged_add_up_in_a_difference():
    """Two policies that differ only where the log has nothing have one estimate, and are not the same."""
    rng = np.random.default_rng(0)
    states, actions = rng.integers(0, 3, 600), rng.integers(0, 2, 600)
    actions[states == 2] = 0
    data = gd.Transitions(states, actions, rng.normal(size=600), rng.integers(0, 3, 600), initial_states=[0, 1, 2] * 20)
    table = np.full((3, 2), 0.5)
    changed = np.array(table)
    changed[2] = [0.4, 0.6]
    one, other = (gd.evaluate(data, gd.TabularPolicy(own), discount=0.8) for own in (table, changed))
    found = one - other
    low, high = found.interval
    assert found.value == pytest.approx(0, abs=1e-9)
    assert high > 0.05 and low < -0.05


def test_the_log_is_known_by_its_content():
    _, _, data = rollout()
    copied = replace(data, rewards=np.array(data.rewards))
    assert copied.digest == data.digest
    one, other = gd.evaluate(data, policy(0.3), discount=0.9), gd.evaluate(copied, policy(0.5), discount=0.9)
    assert (one - other).value == one.value - other.value


def test_what_cannot_be_subtracted_is_refused():
    _, _, data = rollout()
    one = gd.evaluate(data, policy(0.3), discount=0.9)
    rewards = np.array(data.rewards)
    rewards[7] += 1e-9
    with pytest.raises(gd.InputError, match="different logs"):
        _ = one - gd.evaluate(replace(data, rewards=rewards), policy(0.3), discount=0.9)
    with pytest.raises(gd.InputError, match="different discounts"):
        _ = one - gd.evaluate(data, policy(0.3), discount=0.8)
    with pytest.raises(gd.InputError, match="different confidences"):
        _ = one - gd.evaluate(data, policy(0.3), discount=0.9, confidence=0.9)
    learned = gd.evaluate(data, policy(0.3), gd.GradientDICE(0.9), solver=gd.PrimalDual(20, 0.01))
    with pytest.raises(gd.InputError, match="no influence values"):
        _ = one - learned
    with pytest.raises(TypeError):
        _ = one - 1.0  # pyright: ignore[reportOperatorIssue]


def test_the_verdict_is_the_worse_of_the_two():
    mdp, _, _ = rollout()
    data = mdp.rollout(np.tile([0.97, 0.03], (5, 1)), 40, 25, np.random.default_rng(0))
    good, bad = (gd.evaluate(data, policy(share), discount=0.9) for share in (0.95, 0.01))
    order = [gd.Verdict.TRUST, gd.Verdict.CAUTION, gd.Verdict.DO_NOT_TRUST]
    assert order.index(bad.verdict) > order.index(good.verdict)
    assert (good - bad).verdict is (bad - good).verdict is bad.verdict
    assert set((good - bad).reasons) == set(bad.reasons)


@pytest.mark.parametrize("name", ["random 5×2", "ending, random 6×2"])
def test_the_improvement_is_paired_with_the_behaviours_episodes(name):
    problem = problems()[name]()
    data = problem.trajectories(2000, np.random.default_rng(0))
    estimate = gd.evaluate(data, gd.TabularPolicy(problem.target), discount=0.5)
    found = known(estimate.improvement)
    behavior = known(estimate.behavior)
    assert found.baseline == behavior.value
    assert found.value == pytest.approx(estimate.value - found.baseline)
    low, high = known(behavior.interval)
    both = np.hypot(known(estimate.sampling_error), (high - low) / 3.92)
    assert found.sampling_error < both
    assert "improvement" in str(estimate) and estimate.to_dict()["improvement"]["decision"] == found.decision


def test_cut_episodes_are_continued_for_the_behaviour():
    """Of episodes that a time limit cuts, the part that was cut is the behaviour's too."""
    mdp, _, _ = random_problem(3)[0], None, None
    mdp = gd.mdp.TabularMDP(mdp.transition, mdp.reward + np.arange(5)[:, None], np.eye(5)[0])
    behavior = np.full((5, 2), 0.5)
    data = mdp.rollout(behavior, 400, 5, np.random.default_rng(1))
    truth = mdp.value(behavior, 0.95)
    estimate = gd.evaluate(data, policy(0.3), discount=0.95)
    assert known(estimate.behavior_seen).unseen > 0.7
    assert abs(known(estimate.behavior_seen).value - truth) > 0.1
    found = known(estimate.behavior)
    assert known(estimate.improvement).baseline == found.value == pytest.approx(truth, abs=0.05)
    low, high = known(found.interval)
    assert low < truth < high and found.unseen == known(estimate.behavior_seen).unseen


def test_rows_without_episodes_have_a_behaviour_too():
    mdp, target, data_dist = random_problem(3)
    data = mdp.sample(4000, data_dist, np.random.default_rng(0))
    estimate = gd.evaluate(data, gd.TabularPolicy(target), discount=0.9)
    assert estimate.behavior_seen is None
    cloned = data_dist / data_dist.sum(axis=1, keepdims=True)
    found = known(estimate.improvement)
    assert found.baseline == known(estimate.behavior).value == pytest.approx(mdp.value(cloned, 0.9), abs=0.05)
    low, high = known(known(estimate.behavior).interval)
    assert low < mdp.value(cloned, 0.9) < high
    low, high = found.interval
    assert low < mdp.value(target, 0.9) - mdp.value(cloned, 0.9) < high


@pytest.mark.slow
@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_paired_intervals_cover_the_difference(discount):
    """Two-sided: of 200 logs, 95% intervals hold the difference of two policies in 182 to 199."""
    mdp, behavior, _ = rollout()
    one, other = policy(0.2), policy(0.7)
    truth = mdp.value(one.probabilities, discount) - mdp.value(other.probabilities, discount)
    above = mdp.value(one.probabilities, discount) - mdp.value(behavior, discount)
    inside = improved = 0
    for seed in range(200):
        data = mdp.rollout(behavior, 60, 25, np.random.default_rng(seed))
        first, second = (gd.evaluate(data, own, discount=discount) for own in (one, other))
        low, high = (first - second).interval
        inside += low <= truth <= high
        low, high = known(first.improvement).interval
        improved += low <= above <= high
    assert 182 <= inside <= 199 and 182 <= improved <= 199
