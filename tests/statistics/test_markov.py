"""Is the recorded state the state? Found where a part is hidden; no alarm where all is recorded."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.statistics.checks import Check
from gradientdice.statistics.kernel_history import MOST_STEPS, KernelHistory
from gradientdice.statistics.markov import probability_deviation
from gradientdice.statistics.past import Past
from gradientdice_studies.continuous.environments import cart_pole
from gradientdice_studies.coverage.problems import problems
from gradientdice_studies.traps.families import families
from problems import known, random_problem

PAST, PROBABILITY = "dependence on the past", "change of the behaviour's probability within a pair"


def found(estimate: gd.Estimate, name: str) -> Check | None:
    return next((check for check in estimate.further_checks if check.name == name), None)


def judged(family: str, seed: int = 0, **options: Any) -> gd.Estimate:
    of = families()[family]
    case = of.log(np.random.default_rng(seed))
    given: Any = {"discount": of.discount, **options}
    return gd.evaluate(case.data, case.policy, **given)


@pytest.mark.parametrize(
    "family",
    [
        "half-hidden table, 2,000 rows",
        "two places look alike",
        "patients, two variables unrecorded",
        "confounded, lasting",
    ],
)
def test_a_table_that_shows_a_part_of_the_state_is_not_trusted(family):
    estimates = [judged(family, seed) for seed in range(3)]
    assert all(known(found(estimate, PAST)).value > 3 for estimate in estimates)
    assert sum(str(estimate.verdict) == "trust" for estimate in estimates) == 0
    assert any("add history to the state" in reason for reason in estimates[0].reasons)


@pytest.mark.parametrize(
    "family",
    [
        "random 5×2, 3,000 rows",
        "slow chain, one long run",
        "exact moves round a ring",
        "three behaviours, one per episode",
    ],
)
def test_an_honest_table_raises_no_alarm(family):
    values = [known(found(judged(family, seed), PAST)).value for seed in range(6)]
    assert max(values) < 3.5 and abs(np.mean(values)) < 1.2


@pytest.mark.parametrize("discrete", [True, False])
def test_continuous_states_of_which_a_part_is_hidden(discrete):
    """A residual of which all is noise given the whole state goes with the past if one coordinate is hidden."""
    rng = np.random.default_rng(0)
    episodes, horizon = 40, 50
    turn = 0.95 * np.array([[np.cos(0.7), np.sin(0.7)], [-np.sin(0.7), np.cos(0.7)]])
    state, steps = rng.normal(size=(episodes, 2)), []
    for _ in range(horizon):
        action = rng.integers(0, 2, size=episodes) if discrete else rng.uniform(size=(episodes, 1))
        following = state @ turn + 0.2 * rng.normal(size=state.shape)
        following[:, 0] += action.reshape(episodes)
        steps.append((state, action, following[:, 0], following))
        state = following
    columns = [np.stack(column, axis=1) for column in zip(*steps, strict=True)]
    states, actions, rewards, next_states = (c.reshape(episodes * horizon, *c.shape[2:]) for c in columns)
    whole = gd.Transitions(states, actions, rewards, next_states, episodes=np.repeat(np.arange(episodes), horizon))
    half = replace(whole, states=states[:, :1], next_states=next_states[:, :1])
    values = [KernelHistory(log, known(Past.of(log, MOST_STEPS)), 0).dependence(rewards) for log in (whole, half)]
    assert values[0] < 3.5 and values[1] > 10


def test_exact_moves_leave_nothing_for_the_past_to_say():
    """What is left of a residual is then the misfit of the features, which may well go with the past."""
    log = cart_pole().log(2_000, np.random.default_rng(0))
    history = KernelHistory(log, known(Past.of(log, MOST_STEPS)), 0)
    misfit = np.sin(20 * log.states[:, 2])
    assert history.dependence(misfit) == 0
    half = replace(log, states=log.states[:, [0, 2]], next_states=log.next_states[:, [0, 2]])
    change = log.next_states[:, 2] - log.states[:, 2]
    assert KernelHistory(half, known(Past.of(half, MOST_STEPS)), 0).dependence(change) > 7


def test_states_that_repeat_are_a_table_whatever_they_look_like():
    of = families()["half-hidden table, 2,000 rows"]
    case = of.log(np.random.default_rng(0))
    assert isinstance(case.policy, gd.TabularPolicy)
    table, eye = case.policy.probabilities, np.eye(4)
    data = replace(case.data, states=eye[case.data.states], next_states=eye[case.data.next_states])
    policy = gd.DiscretePolicy(lambda states: table[states.argmax(axis=1)], 2)
    functions = gd.LinearFeatures(lambda s, a: np.column_stack([s * (a == 0)[:, None], s * (a == 1)[:, None]]))
    check = known(found(gd.evaluate(data, policy, gd.GradientDICE(0.9), functions=functions), PAST))
    assert check.caution == 3.5 and check.value > 8


def test_trajectory_estimators_do_not_need_it_and_shuffled_rows_do_not_show_it():
    assert found(judged("half-hidden table, 2,000 rows", estimator=gd.DRL(0.9), discount=None), PAST) is not None
    of = families()["confounded, probabilities logged"]
    case = of.log(np.random.default_rng(0))
    for estimator in (gd.PDIS(0.9), gd.WPDIS(0.9), gd.DR(0.9)):
        estimate = gd.evaluate(case.data, case.policy, estimator)
        assert found(estimate, PAST) is None and found(estimate, PROBABILITY) is None
    mdp, target, _ = random_problem(0)
    rows = mdp.sample(2_000, np.full((5, 2), 0.1), np.random.default_rng(0))
    assert found(gd.evaluate(rows, gd.TabularPolicy(target), discount=0.9), PAST) is None


def test_the_past_that_is_seen_does_not_depend_on_the_scale_of_rewards():
    of = families()["patients, two variables unrecorded"]
    case = of.log(np.random.default_rng(0))
    scaled = replace(case.data, rewards=1e-6 * case.data.rewards)
    values = [known(found(gd.evaluate(data, case.policy, discount=0.95), PAST)).value for data in (case.data, scaled)]
    assert np.isclose(*values, rtol=1e-6)


def test_probabilities_that_jump_within_a_pair_reach_the_verdict():
    estimate = judged("confounded, probabilities logged")
    assert known(found(estimate, PROBABILITY)).value > 0.1 and str(estimate.verdict) == "do not trust"
    assert any("the behaviour saw something" in reason for reason in estimate.reasons)


def test_a_behaviour_per_episode_and_one_that_learns_are_legitimate():
    case = families()["three behaviours, one per episode"].log(np.random.default_rng(0))
    assert probability_deviation(case.data) == 0
    mdp, _, _ = random_problem(0)
    data = mdp.rollout(np.full((5, 2), 0.5), 1, 4_000, np.random.default_rng(0))
    slowly = np.log(np.linspace(0.3, 0.7, 4_000))
    assert known(probability_deviation(replace(data, episodes=None, behavior_log_probs=slowly))) < 0.01
    assert probability_deviation(replace(data, behavior_log_probs=None)) is None


def test_a_world_that_changed_is_seen_and_a_behaviour_that_changed_is_not():
    """Both change half way: rewards in one log, the behaviour in the other."""
    found = {}
    for name, less, other in (("same", 0.0, 0.5), ("world", 0.4, 0.5), ("behaviour", 0.0, 0.85)):
        values = []
        for seed in range(5):
            rng = np.random.default_rng([seed, 5])
            problem = problems()["random 5×2"]()
            first = problem.trajectories(1000, rng)
            later = replace(problem, behavior=np.tile([1 - other, other], (5, 1))).trajectories(1000, rng)
            data = gd.Transitions(
                np.append(first.states, later.states),
                np.append(first.actions, later.actions),
                np.append(first.rewards, later.rewards - less),
                np.append(first.next_states, later.next_states),
                episodes=np.append(known(first.episodes), known(later.episodes) + 10_000),
            )
            estimate = gd.evaluate(data, gd.TabularPolicy(problem.target), discount=0.9)
            values.append({check.name: check for check in estimate.checks}["change over the log"])
        found[name] = values
    assert all(check.verdict is gd.Verdict.DO_NOT_TRUST for check in found["world"])
    for name in ("same", "behaviour"):
        assert sum(check.verdict is gd.Verdict.TRUST for check in found[name]) >= 4


def test_rewards_without_noise_do_not_change(rng):
    """What is left of them is rounding, in which anything can be seen."""
    mdp, target, data_dist = random_problem(0)
    for _ in range(5):
        data = mdp.sample(5000, data_dist, rng)
        assert len(np.unique(data.rewards)) <= 10
        estimate = gd.evaluate(data, gd.TabularPolicy(target), discount=0.9)
        assert {check.name: check for check in estimate.checks}["change over the log"].value < 3.5
