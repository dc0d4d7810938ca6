"""Influence values against finite differences of the estimate itself, in every setting it has."""

from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.problem.stream import LogDesign
from gradientdice.statistics.influence import influence
from gradientdice.statistics.intervals import independent_shares, standard_error
from problems import EVERY, episodic_problem, known, leak, loop, made, random_problem, rolled

ESTIMATORS = [
    gd.GradientDICE(0.9),
    gd.GradientDICE(0.9, 0.3, 0.1),
    gd.GradientDICE(0.9, np.inf),
    gd.GradientDICE(1.0),
    gd.GradientDICE(1.0, 2.0, 0.1),
    gd.GradientDICE(1.0, np.inf),
    gd.DualDICE(0.9, power=2.0),
]


def log(terminating: bool, rng):
    weights = rng.uniform(0.5, 1.5, 400)
    if not terminating:
        mdp, target, data_dist = random_problem(0, states=6)
        return replace(mdp.sample(400, data_dist, rng), weights=weights), gd.TabularPolicy(target)
    mdp, target, _ = episodic_problem(0)
    s, a = rng.integers(0, 6, 400), rng.integers(0, 2, 400)
    t = np.array([rng.choice(7, p=mdp.transition[i, j]) for i, j in zip(s, a, strict=True)])
    rewards = mdp.reward[s, a] + rng.normal(size=400)
    starts = rng.integers(0, 6, 30)
    data = gd.Transitions(s, a, rewards, np.where(t == 6, 0, t), starts, terminated=t == 6, weights=weights)
    return data, gd.TabularPolicy(target[:6])


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("terminating", [False, True])
@pytest.mark.parametrize("kind", ["tabular", "linear"])
def test_equals_finite_differences(estimator, terminating, kind, rng):
    data, policy = log(terminating, rng)
    table = rng.normal(size=(12, 4))
    functions = (
        gd.Tabular(6, 2) if kind == "tabular" else gd.LinearFeatures(lambda s, a: table[s * 2 + a], intercept=False)
    )
    if kind == "linear" and isinstance(estimator, gd.DualDICE):
        functions = replace(functions, intercept=True)

    def value(changed):
        return gd.ClosedForm().fit_moments(estimator, gd.Moments.from_transitions(changed, policy, functions)).value

    design = LogDesign(data, policy, functions)
    shares = influence(gd.ClosedForm().fit_moments(estimator, gd.Moments.from_design(design)), design)
    assert abs(shares.rows.sum()) < 1e-12
    step = 1e-4
    for row in (0, 5, 17, 100):
        bump = np.zeros(400)
        bump[row] = step
        up, down = (value(replace(data, weights=known(data.weights) + sign * bump)) for sign in (1, -1))
        assert shares.rows[row] == pytest.approx(known(data.weights)[row] * (up - down) / (2 * step), abs=1e-7)
    if shares.initial is None:
        assert estimator.discount == 1 and not terminating
        return
    starts, copies = data.initial_states, 2000
    more = replace(data, initial_states=np.append(np.tile(known(starts), copies), known(starts)[3]))
    change = (value(more) - value(data)) * (copies * len(known(starts)) + 1) / len(known(starts))
    assert shares.initial[3] == pytest.approx(change, abs=1e-6)


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_with_a_table_it_is_the_efficient_one(discount, rng):
    """IF = τ(r + γV' − Q), less ρ at discount 1, with the fitted model's own τ and Q."""
    mdp, target, data_dist = random_problem(1)
    data = mdp.sample(200_000, data_dist, rng)
    design = LogDesign(data, gd.TabularPolicy(target), gd.Tabular(5, 2))
    shares = influence(gd.ClosedForm().fit_moments(gd.GradientDICE(discount), gd.Moments.from_design(design)), design)
    q, tau = mdp.q_values(target, discount), mdp.ratio(target, discount, data_dist)
    v = np.sum(target * q, axis=1)
    base = mdp.value(target, 1.0) if discount == 1 else 0.0
    td = data.rewards - base + discount * v[data.next_states] - q[data.states, data.actions]
    efficient = tau[data.states, data.actions] * td
    assert np.corrcoef(shares.rows, efficient)[0, 1] > 0.999
    assert np.std(shares.rows) * 200_000 == pytest.approx(np.std(efficient), rel=0.02)


def test_episodes_are_clusters_and_carry_their_first_states(rng):
    mdp, target, _ = random_problem(2)
    behavior = np.full((5, 2), 0.5)
    data = mdp.rollout(behavior, episodes=30, horizon=20, rng=rng)
    design = LogDesign(data, gd.TabularPolicy(target), gd.Tabular(5, 2))
    shares = influence(gd.ClosedForm().fit_moments(gd.GradientDICE(0.9), gd.Moments.from_design(design)), design)
    (clusters,) = independent_shares(shares, data)
    by_hand = shares.rows.reshape(30, 20).sum(axis=1) + shares.initial
    np.testing.assert_allclose(clusters, by_hand)
    assert standard_error([clusters]) == pytest.approx(np.sqrt(30 / 29 * np.sum((by_hand - by_hand.mean()) ** 2)))
    separate = replace(data, initial_states=data.start_states)
    assert len(independent_shares(shares, separate)) == 2


def test_duplicated_rows_do_not_shrink_a_clustered_error(rng):
    mdp, target, _ = random_problem(2)
    data = mdp.rollout(np.full((5, 2), 0.5), episodes=40, horizon=10, rng=rng)
    twice = {
        name: np.repeat(getattr(data, name), 2) for name in ("states", "actions", "rewards", "next_states", "episodes")
    }
    # Features, since a table's error also counts the rows of each pair.
    policy, functions = gd.TabularPolicy(target), gd.LinearFeatures(lambda s, a: np.eye(10)[s * 2 + a])
    one = gd.evaluate(data, policy, discount=0.9, functions=functions)
    two = gd.evaluate(gd.Transitions(**twice), policy, discount=0.9, functions=functions)
    assert two.value == pytest.approx(one.value) and two.standard_error == pytest.approx(one.standard_error)


AVERAGE_ONLY = {"black-box", "cop-td"}
DISCOUNTED_ONLY = {"dual-dice", "gem", "is", "pdis", "wis", "wpdis", "dr", "wdr"}
EVERY_BUT = {"magic", "drl"}  # without influence values; with those of a row that its fits did not see


@pytest.mark.parametrize("discount", [0.8, 1.0])
@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("name", sorted(set(EVERY) - EVERY_BUT))
def test_of_an_episode_with_its_first_state_equals_finite_differences(name, ends, discount):
    """What the value does when an episode counts a little more: its rows and its start, which have weights already."""
    if discount == 1 and name in DISCOUNTED_ONLY or discount < 1 and name in AVERAGE_ONLY:
        return
    problem = leak() if ends else loop()
    data = rolled(problem, 30, 5, seed=1)
    data = replace(data, rewards=data.rewards + np.random.default_rng(1).normal(size=len(data)), initial_states=None)
    _, episode = np.unique(known(data.episodes), return_inverse=True)
    weights = np.resize([1.0, 2.5, 0.5, 4.0, 1.5], 30)
    policy = gd.TabularPolicy(problem[1][:3])

    def answer(counts):
        return made(name, discount).answer(gd.Problem(replace(data, weights=counts[episode]), policy))

    (shares,) = independent_shares(known(answer(weights).influence), replace(data, weights=weights[episode]))
    assert abs(shares.sum()) < 1e-12
    for number in range(6):
        step = np.where(np.arange(30) == number, 1e-5, 0.0)
        slope = (answer(weights * (1 + step)).value - answer(weights * (1 - step)).value) / 2e-5
        assert shares[number] == pytest.approx(slope, rel=1e-4, abs=1e-7)


def test_features_that_are_not_kept_are_made_once_a_pass(rng):
    """The shape of the rows is read from one of them, not from a chunk that the pass then makes again."""
    asked = []

    def features(states, actions):
        asked.append(len(states))
        return np.column_stack([states, actions])

    states = rng.normal(size=(500, 2))
    data = gd.Transitions(states, np.zeros(500, dtype=int), rng.normal(size=500), 0.5 * states, states[:20])
    policy = gd.DiscretePolicy(lambda s: np.ones((len(s), 1)), 1)
    design = LogDesign(data, policy, gd.LinearFeatures(features), chunk_rows=200, cache_bytes=0)
    fit = gd.ClosedForm().fit_moments(gd.GradientDICE(0.9, ridge=0.1), gd.Moments.from_design(design))
    asked.clear()
    influence(fit, design)
    assert sum(asked) == len(data), "those of the next states; those of the logged pairs are kept for other policies"
