"""Importance sampling over trajectories: exact expectations by enumeration, and loops as an independent version."""

import math
from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.statistics.intervals import NormalInterval, independent_shares
from problems import known, ladder, leak, loop, rolled, single, take
from reference.trajectories import every_trajectory, finite_value, importance

FOUR = [gd.IS, gd.PDIS, gd.WIS, gd.WPDIS]


NORMALISED = [gd.WIS, gd.WPDIS]


PROBLEMS = [loop, ladder, leak, single]


def answer(estimator, data, target, seed=0):
    return estimator.answer(gd.Problem(data, gd.TabularPolicy(target), None, seed))


@pytest.mark.parametrize("discount", [0.0, 0.6, 0.95])
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("kind", FOUR)
def test_the_expectation_over_all_trajectories_is_the_value_of_the_first_steps(kind, problem, discount):
    mdp, target, behavior, terminal = problem()
    data = every_trajectory(mdp, behavior, 4, terminal)
    found = answer(kind(discount), data, target)
    truth = finite_value(mdp, target, discount, 4)
    assert found.value == pytest.approx(truth, abs=1e-12)
    assert np.average(found.ratio * data.rewards, weights=data.weights) == pytest.approx(truth, abs=1e-12)
    if problem is ladder:
        assert found.value == pytest.approx(mdp.value(target, discount), abs=1e-12)
        assert found.evidence.mean_ratio == pytest.approx(1, abs=1e-12) and not found.notes
    else:
        # The share of the discounted time that is missing: what is not over by then.
        chain, dist = np.einsum("sa,sat->st", target, mdp.transition), mdp.initial
        for _ in range(4):
            dist = dist @ chain
        missing = discount**4 * (1 - dist[list(terminal)].sum())
        assert found.evidence.mean_ratio == pytest.approx(1 - missing, abs=1e-12)
        (note,) = found.notes
        assert "were cut" in note and f"{missing:.3g} of" in note


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("kind", FOUR)
def test_agrees_with_loops_over_episodes(kind, problem):
    """Interleaved episodes with odd numbers and weights of their own."""
    _, target, _, _ = problem()
    rng = np.random.default_rng(3)
    data = rolled(problem(), 40, 6, seed=1)
    number = rng.permutation(1000)[:40] - 500
    weight = rng.uniform(0.5, 2.0, size=40)
    data = replace(data, episodes=number[data.episodes], weights=weight[data.episodes])
    step = np.array([np.sum(known(data.episodes)[:row] == known(data.episodes)[row]) for row in range(len(data))])
    data = take(data, np.lexsort([rng.random(len(data)), step]))
    found = answer(kind(0.9), data, target)
    assert found.value == pytest.approx(importance(kind.__name__, data, target, 0.9), rel=1e-11)
    assert np.average(found.ratio * data.rewards, weights=data.weights) == pytest.approx(found.value, rel=1e-11)


@pytest.mark.parametrize("kind", FOUR)
def test_influence_values_are_the_derivative_in_the_weight_of_an_episode(kind):
    problem = leak()
    _, target, _, _ = problem
    data = rolled(problem, 30, 5, seed=2)
    found = answer(kind(0.9), data, target)
    (shares,) = independent_shares(found.influence, data)
    assert shares.sum() == pytest.approx(0, abs=1e-14)
    for episode in (0, 7, 29):
        values = []
        for change in (-1e-5, 1e-5):
            weights = np.where(data.episodes == episode, 1 + change, 1.0)
            values.append(answer(kind(0.9), replace(data, weights=weights), target).value)
        assert shares[episode] == pytest.approx((values[1] - values[0]) / 2e-5, rel=1e-4, abs=1e-10)


def test_per_decision_and_normalisation_lower_the_variance():
    """Of one trajectory, over all of them: exactly for PDIS against IS; to first order for the normalised ones."""
    mdp, target, behavior, terminal = loop(1)
    # Rewards far from 0 are what normalisation helps with, and what makes late ratios noise for early rewards.
    mdp = gd.mdp.TabularMDP(mdp.transition, mdp.reward + 5, mdp.initial)
    data = every_trajectory(mdp, behavior, 4, terminal)
    variance = {}
    for kind in FOUR:
        (shares,) = independent_shares(answer(kind(0.9), data, target).influence, data)
        probability = known(data.weights)[np.unique(known(data.episodes), return_index=True)[1]]
        variance[kind] = np.sum(shares**2 / probability)
    assert variance[gd.PDIS] < variance[gd.IS] and variance[gd.WPDIS] < variance[gd.WIS]
    assert variance[gd.WIS] < 0.1 * variance[gd.IS] and variance[gd.WPDIS] < 0.1 * variance[gd.PDIS]


@pytest.mark.parametrize("kind", FOUR)
def test_the_error_falls_as_one_over_the_root_of_the_number_of_episodes(kind):
    problem = leak()
    mdp, target, _, _ = problem
    truth = finite_value(mdp, target, 0.9, 5)
    sizes = [40, 160, 640]
    errors = [
        [answer(kind(0.9), rolled(problem, size, 5, seed=1000 * size + k), target).value - truth for k in range(60)]
        for size in sizes
    ]
    roots = np.sqrt(np.mean(np.square(errors), axis=1))
    slope = np.polyfit(np.log(sizes), np.log(roots), 1)[0]
    assert -0.65 < slope < -0.35


@pytest.mark.parametrize("kind", FOUR)
def test_intervals_cover(kind):
    problem = leak(3)
    mdp, target, _, _ = problem
    truth = finite_value(mdp, target, 0.9, 5)
    covered = 0
    for seed in range(200):
        data = rolled(problem, 150, 5, seed)
        found = answer(kind(0.9), data, target)
        low, high = NormalInterval().interval(found.value, independent_shares(found.influence, data), 0.95, 0)
        covered += low < truth < high
    assert 0.9 <= covered / 200 <= 0.99


@pytest.mark.parametrize("kind", FOUR)
class TestInvariances:
    def test_duplicated_episodes_and_doubled_weights(self, kind):
        _, target, _, _ = loop()
        data = rolled(loop(), 20, 6, 0)
        first = answer(kind(0.9), data, target).value
        twice = take(
            data, np.tile(np.arange(len(data)), 2), episodes=np.append(known(data.episodes), known(data.episodes) + 20)
        )
        assert answer(kind(0.9), twice, target).value == pytest.approx(first, rel=1e-12)
        assert answer(kind(0.9), replace(data, weights=np.full(len(data), 2.0)), target).value == pytest.approx(first)

    def test_renamed_states(self, kind):
        _, target, _, _ = loop()
        data, order = rolled(loop(), 20, 6, 0), np.array([2, 0, 1])
        renamed = replace(data, states=order[data.states], next_states=order[data.next_states])
        moved = np.empty_like(target)
        moved[order] = target
        assert answer(kind(0.9), renamed, moved).value == pytest.approx(
            answer(kind(0.9), data, target).value, rel=1e-12
        )

    def test_a_shifted_reward(self, kind):
        _, target, _, _ = loop()
        data = rolled(loop(), 20, 6, 0)
        first, second = (answer(kind(0.9), replace(data, rewards=data.rewards + c), target) for c in (0.0, 2.0))
        shift = 2 * (1 - 0.9**6) if kind in NORMALISED else 2 * first.evidence.mean_ratio
        assert second.value - first.value == pytest.approx(shift, rel=1e-12)

    def test_where_the_target_made_the_log_it_is_the_logged_value(self, kind):
        mdp, target, _, terminal = leak()
        data = rolled((mdp, target, target, terminal), 50, 6, 0)
        step = np.concatenate([np.arange(n) for n in np.unique(known(data.episodes), return_counts=True)[1]])
        logged = 0.1 * np.sum(0.9**step * data.rewards) / 50
        assert answer(kind(0.9), data, target).value == pytest.approx(logged, rel=1e-12)

    def test_estimated_behaviour_is_the_logged_one_where_they_agree(self, kind):
        """All trajectories with their probabilities have exactly μ as their frequencies."""
        mdp, target, behavior, terminal = leak()
        data = every_trajectory(mdp, behavior, 3, terminal)
        cloned = answer(kind(0.9, behavior=gd.BehaviorCloning()), replace(data, behavior_log_probs=None), target)
        assert cloned.value == pytest.approx(answer(kind(0.9), data, target).value, abs=1e-12)
        assert "estimated from the log" in cloned.notes[0]


@pytest.mark.parametrize("kind", FOUR)
class TestDegenerate:
    def test_one_episode(self, kind):
        _, target, _, _ = single()
        data = rolled(single(), 1, 4, 0)
        assert answer(kind(0.9), data, target).value == pytest.approx(importance(kind.__name__, data, target, 0.9))
        with pytest.raises(gd.InputError, match="two independent units"):
            gd.evaluate(data, gd.TabularPolicy(target), kind(0.9))

    def test_a_target_that_never_takes_what_was_logged(self, kind):
        data = gd.Transitions(
            [0, 0], [0, 0], [1.0, 1.0], [0, 0], episodes=[0, 1], behavior_log_probs=np.log([0.5, 0.5])
        )
        if kind in NORMALISED:
            with pytest.raises(gd.InputError, match=f"{kind.__name__} normalises .* by step 0 they are all 0"):
                answer(kind(0.9), data, np.array([[0.0, 1.0]]))
        else:
            found = answer(kind(0.9), data, np.array([[0.0, 1.0]]))
            assert found.value == 0 and found.evidence.mean_ratio == 0

    def test_a_target_that_leaves_some_episodes(self, kind):
        """A ρ of 0 keeps later ones at 0, and the log's other episodes are not touched by it."""
        mdp, _, behavior, terminal = loop()
        target = np.array([[0.0, 1.0], [0.4, 0.6], [0.4, 0.6]])
        data = every_trajectory(mdp, behavior, 3, terminal)
        assert answer(kind(0.9), data, target).value == pytest.approx(finite_value(mdp, target, 0.9, 3), abs=1e-12)

    def test_very_long_episodes(self, kind):
        """Products below the smallest and above the largest number."""
        n, target = 4000, np.array([[0.9, 0.1]])
        for action, logged in ((0, 0.1), (1, 0.9)):
            data = gd.Transitions(
                np.zeros(2 * n, int),
                np.full(2 * n, action),
                np.ones(2 * n),
                np.zeros(2 * n, int),
                episodes=np.repeat([0, 1], n),
                behavior_log_probs=np.full(2 * n, math.log(logged)),
            )
            if kind in NORMALISED:
                found = answer(kind(0.9), data, target)
                assert found.value == pytest.approx(1) and np.isfinite(found.influence.rows).all()
            elif action == 0:
                with pytest.raises(gd.InputError, match="too large for numbers"):
                    answer(kind(0.9), data, target)
            else:
                # π/μ = 1/9 at each step: all of the product for IS, the sum of its beginnings for PDIS.
                expected = 0.0 if kind is gd.IS else 0.1 / 9 / (1 - 0.9 / 9)
                assert answer(kind(0.9), data, target).value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", FOUR)
def test_refusals_and_their_rows_in_compare(kind):
    mdp, target, _, _ = loop()
    data = rolled(loop(), 30, 6, 0)
    policy, name = gd.TabularPolicy(target), kind.__name__
    lacking = {
        "no episodes": replace(data, episodes=None, initial_states=[0, 1, 2]),
        "behavior_log_probs, or .*BehaviorCloning": replace(data, behavior_log_probs=None),
        "same for all rows": replace(data, weights=np.arange(1.0, len(data) + 1)),
        "must not be above 0": replace(data, behavior_log_probs=-known(data.behavior_log_probs)),
        "probability 0": replace(data, behavior_log_probs=np.where(data.actions == 0, -800.0, -0.7)),
        "does not begin": take(data, np.arange(len(data))[::-1], truncated=None),
    }
    for words, log in lacking.items():
        with pytest.raises(gd.InputError, match=words):
            gd.evaluate(log, policy, kind(0.9))
        with pytest.raises(gd.InputError, match=words):
            gd.compare(log, policy, [gd.GradientDICE(0.9), kind(0.9)]).pipe(_refused, name)
    with pytest.raises(gd.InputError, match="discount below 1"):
        gd.evaluate(data, policy, kind(1.0))
    with pytest.raises(gd.InputError, match="goes on after it ended"):
        gd.evaluate(replace(data, truncated=np.ones(len(data))), policy, kind(0.9))
    drawn = gd.SamplingPolicy(lambda states, rng: rng.normal(size=(len(states), 1)))
    with pytest.raises(gd.InputError, match=f"{name} needs discrete actions"):
        gd.evaluate(replace(data, actions=np.zeros((len(data), 1))), drawn, kind(0.9))
    with pytest.raises(gd.InputError, match="behavior must be BehaviorCloning"):
        kind(0.9, behavior="cloned")
    for bad in (-1.0, float("nan"), 1.5):
        with pytest.raises(gd.InputError, match="discount"):
            kind(bad)


def _refused(table, name):
    """Raises what the row of an estimator says about why it does not apply."""
    (note,) = table.loc[table["estimator"].str.startswith(name + "("), "note"]
    assert note.startswith("not applicable: ")
    raise gd.InputError(note)


def test_given_initial_states_play_no_part():
    _, target, _, _ = loop()
    data = rolled(loop(), 30, 6, 0)
    found = gd.evaluate(replace(data, initial_states=[0]), gd.TabularPolicy(target), gd.PDIS(0.9))
    assert found.value == gd.evaluate(data, gd.TabularPolicy(target), gd.PDIS(0.9)).value
    assert any("initial_states are not used" in note for note in found.notes)
