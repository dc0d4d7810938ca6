"""Problems of several policies on one log: they share what the log decides, and nothing else."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.default.kept import Kept
from gradientdice.problem.folds import moments_without
from gradientdice.problem.of_log import FeaturesKey

STATES = np.random.default_rng(0).normal(size=(301, 2))


def discrete(slope: float) -> gd.DiscretePolicy:
    def probabilities(states: np.ndarray) -> np.ndarray:
        first = 1 / (1 + np.exp(-slope * states[:, 0]))
        return np.column_stack([first, 1 - first])

    return gd.DiscretePolicy(probabilities, 2)


def sampling(shift: float) -> gd.SamplingPolicy:
    return gd.SamplingPolicy(lambda states, rng: shift + rng.normal(size=(len(states), 1)))


def log(policy: gd.DiscretePolicy | gd.SamplingPolicy) -> gd.Transitions:
    rng = np.random.default_rng(1)
    actions = rng.integers(0, 2, 300) if isinstance(policy, gd.DiscretePolicy) else rng.normal(size=(300, 1))
    ended = np.arange(300) % 30 == 29
    return gd.Transitions(
        STATES[:-1], actions, STATES[:-1, 0], STATES[1:], terminated=ended, episodes=np.arange(300) // 30
    )


@pytest.mark.parametrize("make", [discrete, sampling])
def test_the_moments_are_those_of_a_problem_of_its_own(make):
    """Gram matrices of the first policy are used again; what depends on the policy is not."""
    first, second = make(1.0), make(-2.0)
    data, functions = log(first), gd.RandomFourier(20, 0.7)
    problem = gd.Problem(data, first, sharers=2)
    list(moments_without(problem.design_of(functions), problem.folds(4)))
    other = problem.with_policy(second)
    assert other.folds(4) is problem.folds(4)
    alone = gd.Problem(data, second)
    shared, fresh = (list(moments_without(own.design_of(functions), own.folds(4))) for own in (other, alone))
    for one, two in zip(shared, fresh, strict=True):
        for name in ("gram", "next_gram", "mean", "initial", "reward"):
            assert np.array_equal(getattr(one, name), getattr(two, name))


def test_a_table_that_was_found_is_found_anew():
    data = gd.Transitions([0, 1, 0, 1], [0, 1, 1, 0], [0.0, 1.0, 0.5, 1.0], [1, 0, 1, 0], initial_states=[0])
    problem = gd.Problem(data, gd.TabularPolicy(np.full((2, 2), 0.5)))
    other = problem.with_policy(gd.TabularPolicy(np.full((3, 2), 0.5)))
    assert other.functions == gd.Tabular(3, 2) and problem.functions == gd.Tabular(2, 2)


def test_what_depends_on_the_policy_is_not_shared():
    data = gd.Transitions([0, 1, 0, 1], [0, 1, 1, 0], [0.0, 1.0, 0.5, 1.0], [1, 0, 1, 0], initial_states=[0])
    problem = gd.Problem(data, gd.TabularPolicy(np.full((2, 2), 0.5)))
    other = problem.with_policy(gd.TabularPolicy([[1.0, 0.0], [0.0, 1.0]]))
    assert other.parts is problem.parts and other.folds(2) is problem.folds(2)
    assert other.empirical(0.9) is other.empirical(0.9) and other.empirical(0.9) is not problem.empirical(0.9)
    assert problem.tabular_solution(0.9).mean_ratio == pytest.approx(other.tabular_solution(0.9).mean_ratio)
    assert not np.allclose(problem.tabular_solution(0.9).ratio, other.tabular_solution(0.9).ratio)


def test_large_things_are_kept_for_other_policies_only():
    data, policy = log(discrete(1.0)), discrete(1.0)
    for sharers in (1, 3):
        problem = gd.Problem(data, policy, sharers=sharers)
        key, kept = FeaturesKey(gd.RandomFourier(5), 2), Kept()
        folds = problem.folds(2)
        assert (problem.log_parts.features(key) is problem.log_parts.features(key)) == (sharers > 1)
        assert (kept.judge(problem, folds) is kept.judge(problem, folds)) == (sharers > 1)


@pytest.mark.parametrize("ends", [False, True])
def test_policies_of_a_table_share_the_model_and_the_moments_of_the_current_rows(ends):
    mdp = gd.mdp.boyan_chain("continuing")
    data = mdp.rollout(np.full((13, 2), 0.5), 40, 20, np.random.default_rng(0))
    if ends:
        data = gd.Transitions(
            data.states, data.actions, data.rewards, data.next_states, terminated=data.truncated, episodes=data.episodes
        )
    first, second = (gd.TabularPolicy(np.tile([share, 1 - share], (13, 1))) for share in (0.3, 0.8))
    problem = gd.Problem(data, first, sharers=2)
    other, alone = problem.with_policy(second), gd.Problem(data, second)
    assert problem.empirical(0.9).mdp is other.empirical(0.9).mdp
    assert np.array_equal(other.tabular_solution(0.9).ratio, alone.tabular_solution(0.9).ratio)
    assert not np.array_equal(other.tabular_solution(0.9).ratio, problem.tabular_solution(0.9).ratio)
    assert problem.moments.weight == other.moments.weight
    for name in ("gram", "next_gram", "mean", "initial", "reward"):
        assert np.array_equal(getattr(other.moments, name), getattr(alone.moments, name))


def test_a_log_that_lacks_what_a_policy_does_has_a_model_of_its_own():
    """State 2 was only ever seen as a next state: its rows go to a start, for those policies that reach it."""
    data = gd.Transitions(
        [0, 1, 0, 1, 0], [0, 1, 1, 0, 0], [0.0, 1.0, 0.5, 1.0, 0.0], [1, 0, 1, 0, 2], initial_states=[0]
    )
    stays, leaves = gd.TabularPolicy(np.tile([0.5, 0.5], (3, 1))), gd.TabularPolicy(np.tile([0.0, 1.0], (3, 1)))
    problem = gd.Problem(data, stays, sharers=2)
    for policy in (stays, leaves):
        shared = problem.with_policy(policy).tabular_solution(0.9)
        alone = gd.Problem(data, policy).tabular_solution(0.9)
        assert np.array_equal(shared.ratio, alone.ratio) and shared.unlogged == alone.unlogged
