"""The search for functions, and the default answer for continuous states."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.estimators.doubly_robust.search import search_functions
from gradientdice.inference.intervals import independent_shares
from problems import known, linear_gaussian, made


def test_the_default_answers_a_continuous_problem_with_nothing_tuned():
    data, policy, truth = linear_gaussian(6000, np.random.default_rng(0))
    estimate = gd.evaluate(data, policy, discount=0.9)
    assert known(estimate.interval)[0] < truth < known(estimate.interval)[1]
    behaviour = data.rewards.mean()
    assert abs(estimate.value - truth) < 0.1 * abs(behaviour - truth)
    assert "doubly robust" in estimate.estimator and "RandomFourier" in estimate.functions
    assert any("kernel Bellman loss" in note for note in estimate.notes)
    again = gd.evaluate(data, policy, discount=0.9)
    assert again.value == estimate.value, "the same seed gives the same answer"


def test_the_default_offers_candidates_and_spans_the_plausible_ones():
    data, policy, truth = linear_gaussian(4000, np.random.default_rng(1))
    (result,) = search_functions(gd.Problem(data, policy), [0.9])
    low, high = known(gd.evaluate(data, policy, discount=0.9).interval)
    assert len(result.candidates) >= 4
    best = min(candidate.loss for candidate in result.candidates)
    assert result.chosen.loss <= best + 3 * (result.chosen.noise + max(c.noise for c in result.candidates))
    assert result.chosen in result.spanned
    for candidate in result.spanned:
        samples = independent_shares(known(candidate.answer.influence), data)
        own = gd.NormalInterval().interval(candidate.answer.value, samples, 0.95, 0)
        margin = result.allowance(0.95)
        assert low <= own[0] - margin and own[1] + margin <= high


@pytest.mark.parametrize("estimator", [gd.GradientDICE(0.9), gd.LSTDQ(0.9), gd.MQL(0.9)], ids=repr)
def test_the_search_serves_every_estimator_that_needs_functions(estimator):
    """One rule for functions that are left out: the search's, with the span and the allowance of the default."""
    data, policy, truth = linear_gaussian(2000, np.random.default_rng(1))
    default, own = gd.evaluate(data, policy, discount=0.9), gd.evaluate(data, policy, estimator)
    assert own.functions == default.functions
    assert known(own.interval)[0] <= known(default.interval)[0] and known(default.interval)[1] <= known(own.interval)[1]
    assert known(own.interval)[0] < truth < known(own.interval)[1]


@pytest.mark.parametrize("name", ["lstdq", "mwl", "fqe"])
def test_features_that_are_searched_for_are_judged_too(name):
    rng = np.random.default_rng(0)
    states = rng.uniform(-1, 1, size=(3000, 2))
    following = np.clip(states + 0.1 * rng.normal(size=states.shape), -1, 1)
    rewards = np.sign(np.sin(4 * states[:, 0]))
    data = gd.Transitions(states, rng.integers(0, 2, 3000), rewards, following, initial_states=states[:50])
    policy = gd.DiscretePolicy(lambda states: np.tile([0.3, 0.7], (len(states), 1)), 2)
    left_out = gd.evaluate(data, policy, made(name, 0.9))
    chosen = eval(left_out.functions, {"RandomFourier": gd.RandomFourier})
    given = gd.evaluate(data, policy, made(name, 0.9), functions=chosen)
    assert left_out.value == given.value
    assert known(left_out.diagnostics).bellman_misfit == known(given.diagnostics).bellman_misfit != 0
    assert any("features chosen among" in note for note in left_out.notes)
    assert not any("features chosen among" in note for note in given.notes)
    assert (
        known(left_out.interval)[0] < known(given.interval)[0]
        and known(given.interval)[1] < known(left_out.interval)[1]
    )


def test_state_estimators_with_features_that_are_searched_for_are_not_trusted():
    rng = np.random.default_rng(0)
    states = rng.uniform(-1, 1, size=(500, 2))
    data = gd.Transitions(states, rng.integers(0, 2, 500), states[:, 0], states[::-1], initial_states=states[:50],
                          behavior_log_probs=np.full(500, np.log(0.5)))  # fmt: skip
    policy = gd.DiscretePolicy(lambda states: np.tile([0.3, 0.7], (len(states), 1)), 2)
    estimate = gd.evaluate(data, policy, gd.GEM(0.9))
    assert any("cannot test their fit" in caution for caution in estimate.cautions)
    assert str(estimate.verdict) != "trust"


def continuous(rng, n=300, episodes=None, actions=2):
    states = rng.normal(size=(n, 2))
    return gd.Transitions(
        states, rng.integers(0, actions, n), rng.normal(size=n), states, states[:50], episodes=episodes
    )


def test_too_few_units_for_cross_fitting_are_refused(rng):
    policy = gd.DiscretePolicy(lambda s: np.full((len(s), 2), 0.5), 2)
    for data in (continuous(rng, episodes=np.arange(300) // 100), continuous(rng, n=3)):
        with pytest.raises(gd.InputError, match="at least 4 independent units"):
            gd.evaluate(data, policy, discount=0.9)
    four = replace(continuous(rng, episodes=np.arange(300) // 75), weights=(np.arange(300) >= 75).astype(float))
    with pytest.raises(gd.InputError, match="the log has 3 episodes"):
        gd.evaluate(four, policy, discount=0.9)
    data = replace(continuous(rng, episodes=np.arange(300) // 60), weights=(np.arange(300) >= 60).astype(float))
    low, high = known(gd.evaluate(data, policy, discount=0.9).interval)
    assert low < 0 < high, "an episode of weight 0 is skipped, and these rewards are noise about 0"
