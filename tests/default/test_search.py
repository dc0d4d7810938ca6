"""The search for functions, and the default answer for continuous states."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.base.effort import Effort
from gradientdice.default.allowance import SPREAD
from gradientdice.default.learners import Learners
from gradientdice.default.model import values
from gradientdice.default.search import mixed_features, search_functions
from gradientdice.statistics.influence import HeldOutQ
from gradientdice.statistics.intervals import independent_shares
from gradientdice_studies.traps.drift import Drift
from problems import known, linear_gaussian, made


def test_the_kernel_alone_answers_a_continuous_problem_with_nothing_tuned():
    data, policy, truth = linear_gaussian(6000, np.random.default_rng(0))
    estimate = gd.evaluate(data, policy, discount=0.9, effort="quick")
    assert known(estimate.interval)[0] < truth < known(estimate.interval)[1]
    behaviour = data.rewards.mean()
    assert abs(estimate.value - truth) < 0.1 * abs(behaviour - truth)
    assert "doubly robust" in estimate.estimator and "RandomFourier" in estimate.functions
    assert any("ridge" in note for note in estimate.notes) and any("Q is" in note for note in estimate.notes)
    assert any("not simulated" in note for note in estimate.notes)
    again = gd.evaluate(data, policy, discount=0.9, effort="quick")
    assert again.value == estimate.value, "the same seed gives the same answer"


@pytest.mark.slow
def test_the_default_learns_a_model_too():
    data, policy, truth = linear_gaussian(2000, np.random.default_rng(0))
    estimate = gd.evaluate(data, policy, discount=0.9)
    assert known(estimate.interval)[0] < truth < known(estimate.interval)[1]
    assert any("the learned dynamics leave" in note for note in estimate.notes)


def test_several_discounts_share_the_pass_and_change_nothing():
    data, policy, _ = linear_gaussian(1500, np.random.default_rng(1))
    problem = gd.Problem(data, policy)
    together = search_functions(problem, [0.5, 0.9])
    for discount, found in zip((0.5, 0.9), together, strict=True):
        (alone,) = search_functions(problem, [discount])
        assert alone.chosen.ridge == found.chosen.ridge
        assert alone.chosen.answer.value == pytest.approx(found.chosen.answer.value, rel=1e-10)


def test_more_effort_is_more_features():
    data, policy, _ = linear_gaussian(1500, np.random.default_rng(1))
    counts = [mixed_features(gd.Problem(data, policy, effort=effort)).num_features for effort in Effort]
    assert counts == sorted(counts) and counts[0] < counts[1] < counts[2]
    with pytest.raises(gd.InputError, match="quick, normal, thorough"):
        gd.evaluate(data, policy, discount=0.9, effort="much")
    word: Any = "quick"
    assert gd.Problem(data, policy, effort=word).effort is Effort.QUICK


@dataclass
class Exact:
    """What is exactly known of `linear_gaussian`'s target, in the place of a learned model."""

    by_discount: list[list[HeldOutQ]]
    values: tuple[float, ...]
    spreads: tuple[float, ...] = (0.0,)
    left_share: float = 0.0
    lasting: tuple[float, ...] = (1.0,)

    def notes(self, number: int) -> tuple[str, ...]:
        return (f"a model for discount {number}",)


def test_a_good_model_takes_over_and_the_interval_shrinks():
    """In deterministic dynamics the residual of the exact Q is 0: only the sampled starts have an error."""
    rng, gamma = np.random.default_rng(3), 0.9
    states, starts = rng.normal(size=(1500, 1)), rng.normal(size=(100, 1))
    actions = rng.integers(0, 2, 1500)

    def moved(state, action):
        return 0.8 * state + 0.3 * (2 * action - 1)

    # Linear rewards and moves: V = a s + b, with pushes to the right in 7 of 10 steps.
    a = 1 / (1 - gamma * 0.8)
    b = gamma * a * 0.3 * 0.4 / (1 - gamma)
    data = gd.Transitions(states, actions, states[:, 0], moved(states, actions[:, None]), initial_states=starts)
    policy = gd.DiscretePolicy(lambda s: np.tile([0.3, 0.7], (len(s), 1)), 2)
    following = data.next_states[:, 0]
    exact = HeldOutQ(states[:, 0] + gamma * (a * following + b), a * following + b, a * starts[:, 0] + b)
    truth, seen = (1 - gamma) * (a * starts.mean() + b), []

    def simulate(problem, discounts, folds, effort):
        seen.append((list(discounts), folds.count, effort))
        return Exact([[exact]], (truth,))

    problem = gd.Problem(data, policy)
    (with_model,) = search_functions(problem, [gamma], Learners(simulate))
    (without,) = search_functions(problem, [gamma])
    assert seen == [([gamma], 2, Effort.NORMAL)]
    assert with_model.chosen.answer.value == pytest.approx(truth, abs=1e-6), "for these starts"
    assert with_model.chosen.shares["the model's"] > 0.99
    # With the kernel's Q the answer differs a little, by its own noise.
    apart = abs(with_model.chosen.answer.value - without.chosen.answer.value)
    assert 0 < with_model.allowance(0.95) < 0.2 * with_model.chosen.error and apart < 0.5 * with_model.chosen.error
    only_starts = (1 - gamma) * a * starts.std(ddof=1) / 10
    assert with_model.chosen.error == pytest.approx(only_starts, rel=0.01)
    assert "a model for discount 0" in with_model.notes(0.95)


def test_the_interval_is_wider_where_two_kinds_of_q_disagree():
    """A model that stretches the state's value by half is plausible; where the log is thin the kernel's Q tells."""
    rng, gamma, count = np.random.default_rng(6), 0.9, 3000
    states, starts = rng.normal(size=(count, 1)), 3 + 0.2 * rng.normal(size=(200, 1))
    following = 0.8 * states + 0.1 * rng.normal(size=(count, 1))
    data = gd.Transitions(states, rng.integers(0, 2, count), states[:, 0], following, initial_states=starts)
    policy = gd.DiscretePolicy(lambda s: np.full((len(s), 2), 0.5), 2)
    truth, widths = (1 - gamma) * starts.mean() / (1 - gamma * 0.8), []
    for stretch in (1.0, 1.5):
        slope = stretch / (1 - gamma * 0.8)
        model = HeldOutQ(slope * states[:, 0], slope * following[:, 0], slope * starts[:, 0])

        def simulate(problem, discounts, folds, effort, model=model, slope=slope):
            return Exact([[model]], ((1 - gamma) * slope * starts.mean(),))

        (found,) = search_functions(gd.Problem(data, policy), [gamma], Learners(simulate))
        widths.append(1.96 * found.chosen.error + found.allowance(0.95))
        assert abs(found.chosen.answer.value - truth) < widths[-1]
    assert widths[1] > 4 * widths[0], "all of the stretched model's error would be 0.54"


@pytest.mark.parametrize("gamma", [0.9, 1.0])
def test_the_interval_is_wider_where_the_networks_disagree(gamma):
    """Answers with both kinds of Q can be wrong alike, as where few episodes of the log have an end."""
    rng, count = np.random.default_rng(7), 1500
    states, starts = rng.normal(size=(count, 1)), rng.normal(size=(100, 1))
    following = 0.8 * states + 0.1 * rng.normal(size=(count, 1))
    data = gd.Transitions(states, rng.integers(0, 2, count), states[:, 0], following, initial_states=starts)
    policy = gd.DiscretePolicy(lambda s: np.full((len(s), 2), 0.5), 2)
    slope = 1 / (1 - gamma * 0.8)
    model = HeldOutQ(slope * states[:, 0], slope * following[:, 0], slope * starts[:, 0])
    allowances = []
    for spread in (0.0, 10.0):

        def simulate(problem, discounts, folds, effort, spread=spread):
            return Exact([[model]], ((1 - gamma) * slope * starts.mean(),), (spread,))

        (found,) = search_functions(gd.Problem(data, policy), [gamma], Learners(simulate))
        allowances.append(found.allowance(0.95))
    assert allowances[0] < 0.2, "both kinds of Q are right"
    assert allowances[1] == pytest.approx(1.96 * SPREAD * 10, rel=1e-3)


@pytest.mark.parametrize(("left", "alone"), [(0.05, True), (0.15, False)])
def test_at_discount_one_a_model_that_leaves_the_log_does_not_answer_alone(left, alone):
    rng, count = np.random.default_rng(8), 1500
    states = rng.normal(size=(count, 1))
    following = 0.8 * states + 0.1 * rng.normal(size=(count, 1))
    data = gd.Transitions(states, rng.integers(0, 2, count), states[:, 0], following)
    policy = gd.DiscretePolicy(lambda s: np.full((len(s), 2), 0.5), 2)
    model = HeldOutQ(5 * states[:, 0], 5 * following[:, 0], None)

    def simulate(problem, discounts, folds, effort):
        return Exact([[model]], (0.0,), left_share=left)

    (found,) = search_functions(gd.Problem(data, policy), [1.0], Learners(simulate))
    assert (set(found.chosen.shares) == {"the model's"}) == alone
    assert found.chosen.answer.evidence.left == (left if alone else None)


def test_a_model_that_outlives_the_ratio_is_noticed():
    """Episodes of the log end after ten steps on average, and so do the policy's: it goes on for 10 of 19 steps."""
    rng, count, gamma = np.random.default_rng(9), 3000, 0.9
    states, starts = rng.normal(size=(count, 1)), rng.normal(size=(200, 1))
    following, ended = rng.normal(size=(count, 1)), rng.random(count) < 0.1
    data = gd.Transitions(
        states, rng.integers(0, 2, count), states[:, 0], following, terminated=ended, initial_states=starts
    )
    policy = gd.DiscretePolicy(lambda s: np.full((len(s), 2), 0.5), 2)
    model = HeldOutQ(states[:, 0], np.zeros(count), starts[:, 0])
    seen = {}
    for lasting in (0.526, 0.1, 1.0):

        def simulate(problem, discounts, folds, effort, lasting=lasting):
            return Exact([[model]], ((1 - gamma) * starts.mean(),), lasting=(lasting,))

        (found,) = search_functions(gd.Problem(data, policy), [gamma], Learners(simulate))
        seen[lasting] = found.chosen.answer.evidence.outlived
    assert 1 <= seen[0.526] < 1.15
    assert seen[0.1] == pytest.approx(5.26, rel=0.15)
    assert seen[1.0] == pytest.approx(1.9, rel=0.15)


def test_all_but_quick_answers_learn_a_model(monkeypatch):
    data, policy, _ = linear_gaussian(500, np.random.default_rng(4))
    nothing = HeldOutQ(np.zeros(500), np.zeros(500), np.zeros(len(known(data.start_states))))
    seen = []

    def simulate(problem, discounts, folds, effort, kept):
        seen.append(effort)
        return Exact([[nothing]], (0.0,))

    monkeypatch.setattr(values, "simulated_values", simulate)
    default = gd.evaluate(data, policy, discount=0.9)
    quick, thorough = (gd.evaluate(data, policy, discount=0.9, effort=effort) for effort in ("quick", "thorough"))
    assert seen == [Effort.NORMAL, Effort.THOROUGH]
    for estimate in (default, thorough):
        assert "a model for discount 0" in estimate.notes
    assert any("was not simulated" in note for note in quick.notes)


def test_a_useless_model_is_left_out():
    data, policy, truth = linear_gaussian(3000, np.random.default_rng(4))
    noise = np.random.default_rng(5)
    starts = len(known(data.start_states))
    wild = HeldOutQ(noise.normal(size=3000) * 50, noise.normal(size=3000) * 50, noise.normal(size=starts) * 50)

    def simulate(problem, discounts, folds, effort):
        return Exact([[wild]], (0.0,))

    (found,) = search_functions(gd.Problem(data, policy), [0.9], Learners(simulate))
    assert found.chosen.shares.get("the model's", 0.0) < 0.05
    assert abs(found.chosen.answer.value - truth) < 4 * found.chosen.error + found.allowance(0.95)


def test_the_interval_is_widened_by_what_held_out_rows_show_alone():
    data, policy, _ = linear_gaussian(1500, np.random.default_rng(2))
    (found,) = search_functions(gd.Problem(data, policy, effort=Effort.QUICK), [0.9])
    estimate = gd.evaluate(data, policy, discount=0.9, interval=gd.NormalInterval(), effort="quick")
    samples = independent_shares(known(found.chosen.answer.influence), data)
    low, high = gd.NormalInterval().interval(found.chosen.answer.value, samples, 0.95, 0)
    margin = found.allowance(0.95)
    assert known(estimate.interval) == pytest.approx((low - margin, high + margin), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("discount", [0.9, 0.99])
def test_intervals_cover_as_often_as_they_say(discount):
    """50 logs of a drifting point, with an exact value; of 50 intervals at 95% at least 44 (0.5% of tries have fewer)."""
    chain, inside = Drift(), 0
    for seed in range(50):
        rng = np.random.default_rng([9, seed])
        data = chain.episodes(chain.groups(40, chain.shares, rng), 25, rng)
        low, high = known(gd.evaluate(data, chain.policy, discount=discount, seed=seed, effort="quick").interval)
        inside += low < chain.truth(discount) < high
    assert inside >= 44


@pytest.mark.parametrize("estimator", [gd.GradientDICE(0.9), gd.LSTDQ(0.9), gd.MQL(0.9)], ids=repr)
def test_the_search_serves_every_estimator_that_needs_functions(estimator):
    """One rule for functions that are left out: the search's, with an interval that spans the default's."""
    data, policy, truth = linear_gaussian(2000, np.random.default_rng(1))
    default, own = (gd.evaluate(data, policy, kind, effort="quick") for kind in (gd.Automatic(0.9), estimator))
    (found,) = search_functions(gd.Problem(data, policy, effort=Effort.QUICK), [0.9])
    assert own.functions == repr(found.functions) and default.functions == repr(found.chosen.functions)
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
    left_out = gd.evaluate(data, policy, made(name, 0.9), effort="quick")
    chosen = eval(left_out.functions, {"RandomFourier": gd.RandomFourier})
    given = gd.evaluate(data, policy, made(name, 0.9), functions=chosen)
    assert left_out.value == given.value
    assert known(left_out.diagnostics).bellman_misfit == known(given.diagnostics).bellman_misfit != 0
    assert any("ridge" in note for note in left_out.notes)
    assert not any("ridge" in note for note in given.notes)
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
    estimate = gd.evaluate(data, policy, gd.GEM(0.9), effort="quick")
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
            gd.evaluate(data, policy, discount=0.9, effort="quick")
    four = replace(continuous(rng, episodes=np.arange(300) // 75), weights=(np.arange(300) >= 75).astype(float))
    with pytest.raises(gd.InputError, match="the log has 3 episodes"):
        gd.evaluate(four, policy, discount=0.9, effort="quick")
    data = replace(continuous(rng, episodes=np.arange(300) // 60), weights=(np.arange(300) >= 60).astype(float))
    # Of 95% intervals one in twenty would miss, whatever is done about the weights.
    low, high = known(gd.evaluate(data, policy, discount=0.9, effort="quick", confidence=0.999).interval)
    assert low < 0 < high, "an episode of weight 0 is skipped, and these rewards are noise about 0"
