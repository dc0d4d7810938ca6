"""Moments: exact against sampled, additive, weighted, and with termination as it should be."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import gradientdice as gd
from problems import episodic_problem, known, population_log, random_problem, take

FIELDS = ("gram", "next_gram", "mean", "initial", "reward")


def close(first: gd.Moments, second: gd.Moments, atol: float = 1e-13) -> None:
    for name in FIELDS:
        np.testing.assert_allclose(getattr(first, name), getattr(second, name), atol=atol, err_msg=name)


def features(rng, size=10, width=4):
    return rng.normal(size=(size, width))


def test_exact_moments_equal_their_definition(problem, rng):
    mdp, target, data_dist = problem
    x = features(rng)
    d, chain = np.diag(data_dist.ravel()), mdp.pair_chain(target)
    moments = gd.Moments.exact(mdp, target, x, data_dist)
    np.testing.assert_allclose(moments.gram, x.T @ d @ x, atol=1e-14)
    np.testing.assert_allclose(moments.bellman(0.9), x.T @ (np.eye(10) - 0.9 * chain.T) @ d @ x, atol=1e-14)
    np.testing.assert_allclose(moments.mean, x.T @ d.sum(axis=1), atol=1e-14)
    np.testing.assert_allclose(known(moments.initial), x.T @ (mdp.initial[:, None] * target).ravel(), atol=1e-14)
    np.testing.assert_allclose(moments.reward, x.T @ d @ mdp.reward.ravel(), atol=1e-14)


def test_sampled_moments_approach_exact_ones(rng):
    mdp, target, data_dist = random_problem(1)
    table = features(rng)
    functions = gd.LinearFeatures(lambda s, a: table[s * 2 + a], intercept=False)
    exact = gd.Moments.exact(mdp, target, table, data_dist)
    errors = []
    for n in (2_000, 200_000):
        data = mdp.sample(n, data_dist, rng)
        moments = gd.Moments.from_transitions(data, gd.TabularPolicy(target), functions)
        errors.append(max(np.abs(getattr(moments, name) - getattr(exact, name)).max() for name in FIELDS))
    assert errors[1] < errors[0] / 3 and errors[1] < 0.03


@pytest.mark.parametrize("kind", ["tabular", "linear"])
def test_parts_add_up_to_the_whole_in_any_chunks(rng, kind):
    mdp, target, data_dist = random_problem(2)
    table = features(rng)
    functions = gd.Tabular(5, 2) if kind == "tabular" else gd.LinearFeatures(lambda s, a: table[s * 2 + a])
    policy = gd.TabularPolicy(target)
    data = mdp.sample(3000, data_dist, rng)
    whole = gd.Moments.from_transitions(data, policy, functions)
    close(whole, gd.Moments.from_transitions(data, policy, functions, chunk_rows=77))
    parts = [
        gd.Transitions(
            data.states[rows],
            data.actions[rows],
            data.rewards[rows],
            data.next_states[rows],
            known(data.initial_states)[rows],
        )
        for rows in (slice(0, 1900), slice(1900, 3000))
    ]
    merged = gd.Moments.from_transitions(parts[0], policy, functions) + gd.Moments.from_transitions(
        parts[1], policy, functions
    )
    close(whole, merged)
    assert merged.weight == 3000 and merged.initial_weight == 3000


@given(parts=arrays(np.int64, 12, elements=st.integers(0, 2)), ended=arrays(np.bool_, 12))
def test_moments_of_any_parts_add_up(parts, ended):
    """In any parts, with rows that end in all of them, in some or in none."""
    mdp, target, data_dist = random_problem(2)
    data = replace(mdp.sample(12, data_dist, np.random.default_rng(0)), terminated=ended)
    policy, functions = (
        gd.TabularPolicy(target),
        gd.LinearFeatures(lambda s, a: np.exp(np.column_stack([s / 5, -a, s * a / 5]))),
    )
    whole = gd.Moments.from_transitions(data, policy, functions)
    found = [
        gd.Moments.from_transitions(
            take(data, rows, initial_states=known(data.initial_states)[rows]), policy, functions
        )
        for rows in (np.flatnonzero(parts == part) for part in np.unique(parts))
    ]
    for discount in (0.9, 1.0):
        close(sum(found[1:], found[0]).for_discount(discount), whole.for_discount(discount), atol=1e-12)


def test_a_part_without_ends_adds_up_with_one_that_has_some(rng):
    mdp, target, data_dist = random_problem(2)
    ended = np.arange(600) % 4 == 0
    ended[:300] = False
    data = replace(mdp.sample(600, data_dist, rng), terminated=ended, weights=rng.uniform(0.5, 2, 600))
    policy, functions = gd.TabularPolicy(target), gd.Tabular(5, 2)
    parts = [
        gd.Moments.from_transitions(
            take(data, rows, initial_states=known(data.initial_states)[rows]), policy, functions
        )
        for rows in (np.arange(300), np.arange(300, 600))
    ]
    assert [part.num_features for part in parts] == [10, 11]
    whole = gd.Moments.from_transitions(data, policy, functions)
    for merged in (parts[0] + parts[1], parts[1] + parts[0]):
        close(merged, whole, atol=1e-12)
        assert merged.weight == pytest.approx(whole.weight)
        assert known(merged.absorbing_weight) == pytest.approx(known(whole.absorbing_weight))


def test_weights_are_repetitions(rng):
    mdp, target, data_dist = random_problem(3)
    data = mdp.sample(500, data_dist, rng)
    times = rng.integers(1, 4, size=500)
    fields = {name: getattr(data, name) for name in ("states", "actions", "rewards", "next_states")}
    policy, functions = gd.TabularPolicy(target), gd.Tabular(5, 2)
    weighted = gd.Transitions(**fields, initial_states=data.initial_states, weights=times)
    repeated = gd.Transitions(**{k: np.repeat(v, times) for k, v in fields.items()}, initial_states=data.initial_states)
    close(
        gd.Moments.from_transitions(weighted, policy, functions),
        gd.Moments.from_transitions(repeated, policy, functions),
    )


def test_continuous_actions_are_averaged_over_several_draws():
    data = gd.Transitions(
        np.zeros((50, 1)), np.ones((50, 1)), np.zeros(50), np.zeros((50, 1)), initial_states=np.zeros((2000, 1))
    )
    policy = gd.SamplingPolicy(lambda states, rng: rng.normal(2.0, 1.0, size=(len(states), 1)))
    functions = gd.LinearFeatures(lambda states, actions: actions, draws=16)
    moments = gd.Moments.from_transitions(data, policy, functions)
    assert known(moments.initial)[1] == pytest.approx(2.0, abs=5 / np.sqrt(2000 * 16))


@pytest.mark.parametrize("scale", [1e-2, 1.0, 50.0])
def test_termination_is_an_absorbing_state_whatever_the_weights_scale(scale):
    mdp, target, _ = episodic_problem(0)
    log = population_log(mdp)
    log = replace(log, weights=log.weights * scale)
    policy, functions = gd.TabularPolicy(target[:6]), gd.Tabular(6, 2)
    moments = gd.Moments.from_transitions(log, policy, functions)
    solution = gd.solve(gd.GradientDICE(0.9), moments)
    value = solution.ratio_params @ moments.reward
    assert value == pytest.approx(mdp.value(target, 0.9), abs=3e-6)  # initial states are rounded to 1e-6
    # Masking the next features at the end, the usual mistake, gives another number.
    masked = replace(
        moments,
        gram=moments.gram[:-1, :-1],
        next_gram=moments.next_gram[:-1, :-1],
        mean=moments.mean[:-1],
        initial=known(moments.initial)[:-1],
        reward=moments.reward[:-1],
        absorbing_weight=None,
    )
    wrong = gd.solve(gd.GradientDICE(0.9), masked).ratio_params @ masked.reward
    assert abs(wrong - mdp.value(target, 0.9)) > 0.01


def test_at_discount_1_ended_episodes_restart():
    mdp, target, transition = episodic_problem(1)
    log = population_log(mdp)
    policy, functions = gd.TabularPolicy(target[:6]), gd.Tabular(6, 2)
    moments = gd.Moments.from_transitions(log, policy, functions)
    restarted = moments.for_discount(1.0)
    assert restarted.num_features == 12
    solution = gd.solve(gd.GradientDICE(1.0), moments)
    inner = transition[:6, :, :6] + transition[:6, :, 6:] * mdp.initial[:6]
    truth = gd.mdp.TabularMDP(inner, mdp.reward[:6], mdp.initial[:6]).value(target[:6], 1.0)
    assert solution.ratio_params @ restarted.reward == pytest.approx(truth, abs=3e-6)


def test_truncation_is_not_termination(rng):
    mdp, target, data_dist = random_problem(5)
    data = mdp.rollout(target, 50, 20, rng)
    policy, functions = gd.TabularPolicy(target), gd.Tabular(5, 2)
    without = replace(data, truncated=None)
    close(gd.Moments.from_transitions(data, policy, functions), gd.Moments.from_transitions(without, policy, functions))


def test_what_cannot_be_added_or_solved_is_refused(rng):
    mdp, target, data_dist = random_problem(4)
    first = gd.Moments.exact(mdp, target, features(rng), data_dist)
    with pytest.raises(gd.InputError, match="do not add up"):
        _ = first + gd.Moments.exact(mdp, target, features(rng, width=3), data_dist)
    with pytest.raises(gd.InputError, match="needs initial states"):
        gd.solve(gd.GradientDICE(0.9), replace(first, initial=None))
    with pytest.raises(gd.InputError, match="features must have shape"):
        gd.Moments.exact(mdp, target, np.eye(3), data_dist)


def test_a_pair_that_was_never_logged_is_refused_by_name(rng):
    mdp, target, _ = random_problem(4)
    data_dist = np.full((5, 2), 1 / 9)
    data_dist[3, 1] = 0
    data = mdp.sample(2000, data_dist, rng)
    with pytest.raises(gd.InputError, match="action 1 in state 3"):
        gd.Moments.from_transitions(data, gd.TabularPolicy(target), gd.Tabular(5, 2))
