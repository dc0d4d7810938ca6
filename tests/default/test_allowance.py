"""How much misfit widens an interval."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.base.effort import Effort
from gradientdice.default.allowance import (
    FEW_INPUTS,
    IN_MEAN_SQUARE,
    SIGNIFICANT,
    lacking_in_mean_square,
    lacking_ratio,
    unexplained_share,
)
from gradientdice.default.search import FunctionSearch, Searching
from gradientdice.estimators.doubly_robust.cross_fit import FOLDS
from gradientdice.policies import Policy
from gradientdice.problem.problem import Problem
from gradientdice.statistics.bellman import KernelBellmanLoss
from gradientdice.statistics.room import margin
from problems import known


def test_a_loss_within_its_noise_allows_for_nothing():
    assert lacking_ratio(0.01, 0.01, 1.0) == lacking_ratio(-0.02, 0.01, 1.0) == lacking_ratio(0.0, 0.0, 1.0) == 0


def test_it_scales_with_the_mass_on_the_rows_and_the_root_of_what_noise_does_not_explain():
    whole = lacking_ratio(0.02, 0.01, 1.0)
    assert 0 < lacking_ratio(0.02, 0.01, 0.01) == pytest.approx(2 * 0.01 * whole)
    assert lacking_ratio(0.08, 0.04, 1.0) == pytest.approx(2 * whole)


def test_a_ratio_with_a_significant_loss_is_not_believed_about_its_mass():
    believed = lacking_ratio(0.2, 0.1, 0.2) / 2
    assert lacking_ratio(0.2, 0.1, -0.2) == pytest.approx(5 * believed), "no ratio is negative"
    significant = lacking_ratio(0.101, 0.001, 0.2)
    assert significant == pytest.approx(5 * believed), "at most all of it"


def test_the_bound_in_mean_square():
    size = lacking_in_mean_square(0.06, 0.01, 1.0, input_loss=0.01, square=100.0)
    assert size == pytest.approx(IN_MEAN_SQUARE * 2), "the root of 4 times an input's"
    assert lacking_in_mean_square(0.06, 0.01, 1.0, 0.01, 1.0) == pytest.approx(size / 2), "at most the residual's own"
    assert lacking_in_mean_square(0.02, 0.01, 1.0, 0.01, 100.0) == 0, "twice its noise is not significant"
    assert lacking_in_mean_square(0.06, 0.01, 0.1, 0.01, 100.0) == pytest.approx(0.6 * size), "of 0.6 of the mass"


def missed_log(inputs: int, rows: int = 1_500) -> gd.Transitions:
    """Rewards that kernel features miss, as held-out rows show: with many inputs, as simple a one as a sum."""
    rng = np.random.default_rng(0)
    states, actions = rng.normal(size=(rows, inputs - 1)), rng.normal(size=(rows, 1))
    rewards = np.exp(3 * states[:, 0]) if inputs <= FEW_INPUTS else states.sum(axis=1)
    return gd.Transitions(states, actions, rewards, 0.5 * states, initial_states=states[:200])


def chosen_without_networks(data: gd.Transitions, policy: Policy) -> tuple[Problem, FunctionSearch]:
    problem = Problem(data, policy, seed=0, search=Searching(0.5), effort=Effort.QUICK)
    assert isinstance(problem.chosen, FunctionSearch)
    return problem, problem.chosen


@pytest.mark.parametrize("inputs", [3, 6])
def test_without_networks_many_inputs_widen_the_interval(inputs):
    """The policy is asked, or was asked before: that makes no difference."""
    data = missed_log(inputs)
    asked = gd.SamplingPolicy(lambda states, rng: states[:, :1])
    known = gd.LoggedPolicy(next_actions=data.next_states[:, None, :1], initial_actions=data.states[:200, None, :1])
    for policy in (asked, known):
        problem, search = chosen_without_networks(data, policy)
        found = search.chosen
        loss, noise = found.loss / FOLDS, found.noise / FOLDS
        judge = KernelBellmanLoss(data, policy, problem.folds(FOLDS))
        influence = found.answer.influence
        assert judge.num_inputs == inputs and influence is not None and loss > SIGNIFICANT * noise
        few = lacking_ratio(loss, noise, float(influence.ratio.mean()))
        square = float(np.mean(influence.residual**2))
        many = lacking_in_mean_square(loss, noise, float(influence.ratio.mean()), judge.of_inputs(), square)
        expected = few if inputs <= FEW_INPUTS else many
        assert many > few > 0 and found.lacking == pytest.approx(expected, rel=1e-6)
        assert len(search.cautions) == (inputs > FEW_INPUTS)


def test_many_inputs_without_networks_are_not_trusted(rng):
    """Rewards that are easy to predict: nothing else speaks against the answer."""
    states = rng.normal(size=(2_000, 5))
    actions = rng.integers(0, 2, 2_000)
    data = gd.Transitions(states, actions, rng.normal(size=2_000), rng.normal(size=(2_000, 5)), initial_states=states)
    policy = gd.DiscretePolicy(lambda states: np.full((len(states), 2), 0.5), 2)
    estimate = gd.evaluate(data, policy, discount=0.5, effort="quick")
    assert str(estimate.verdict) == "caution" and any("of 5 inputs" in reason for reason in estimate.reasons)


def test_with_one_action_the_log_is_the_policys_own(rng):
    """As that of the behaviour is, whose value has no networks: more inputs do not widen its interval."""
    states = rng.normal(size=(1_500, 6))
    data = gd.Transitions(
        states, np.zeros(1_500, int), np.abs(states).sum(axis=1) ** 3, 0.5 * states, initial_states=states[:200]
    )
    _, search = chosen_without_networks(data, gd.DiscretePolicy(lambda states: np.ones((len(states), 1)), 1))
    found = search.chosen
    assert found.answer.ratio is not None
    expected = lacking_ratio(found.loss / FOLDS, found.noise / FOLDS, float(found.answer.ratio.mean()))
    assert found.lacking == pytest.approx(expected, rel=1e-6) and expected > 0 and not search.cautions


def test_the_share_of_the_way_to_another_q():
    """All of it where held-out rows cannot tell the two apart, less the surer they are."""
    assert unexplained_share(0.0, 0.04, 0.01) == unexplained_share(0.5, 0.0, 0.5) == 1
    assert unexplained_share(0.0, 0.01, 1.0) == pytest.approx(0.1)
    assert unexplained_share(-0.5, 0.01, 1.0) == pytest.approx(0.1)


def test_the_margin_grows_with_the_confidence():
    few, usual, many = (margin(0.04, confidence) for confidence in (0.5, 0.95, 0.999))
    assert 0 < few < usual < many
    assert usual / few == pytest.approx(1.95996 / 0.67449, rel=1e-4)


def test_the_interval_of_the_default_depends_on_the_confidence_through_it():
    rng = np.random.default_rng(0)
    states = rng.uniform(-1, 1, size=(1000, 2))
    following = np.clip(states + 0.1 * rng.normal(size=states.shape), -1, 1)
    rewards = np.sign(np.sin(9 * states[:, 0]))  # jumps, which smooth features miss
    data = gd.Transitions(states, rng.integers(0, 2, 1000), rewards, following, initial_states=states[:50])
    policy = gd.DiscretePolicy(lambda states: np.tile([0.3, 0.7], (len(states), 1)), 2)
    problem = gd.Problem(data, policy, search=Searching(0.9), effort=Effort.QUICK)
    search = problem.chosen
    assert isinstance(search, FunctionSearch) and search.allowance(0.8) > 0
    assert search.allowance(0.99) == pytest.approx(search.allowance(0.8) * 2.5758 / 1.2816, rel=1e-4)
    assert f"widened by {search.allowance(0.99):.2g}" in " ".join(search.notes(0.99))


def test_a_small_value_behind_an_end_has_a_small_interval():
    """Nine in ten thousand of the target's steps lie on the rows: errors there count for as little."""
    rng = np.random.default_rng(0)
    states = rng.uniform(-1, 1, size=(1500, 1))
    actions = rng.integers(0, 2, size=1500)
    following = states + 0.3 * (2 * actions[:, None] - 1) + 0.1 * rng.normal(size=states.shape)
    ended = np.abs(following[:, 0]) > 0.5
    data = gd.Transitions(states, actions, np.sin(5 * states[:, 0]), following, terminated=ended,
                          initial_states=rng.uniform(-0.2, 0.2, size=(200, 1)))  # fmt: skip
    policy = gd.DiscretePolicy(lambda states: np.tile([0.3, 0.7], (len(states), 1)), 2)
    low, high = known(gd.evaluate(data, policy, discount=0.999, effort="quick").interval)
    assert high - low < 0.01 and high - low < 0.02 * np.ptp(data.rewards)
