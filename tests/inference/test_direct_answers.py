"""What `evaluate` adds to estimators that answer by themselves: verdicts that see gaps and misfits, and clear refusals."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from conftest import random_problem
from gradientdice.related.behavior import ratio_cautions

WITH_FUNCTIONS = ["lstdq", "fqe", "mwl", "mql", "regularized-lagrangian", "drl"]


@pytest.fixture(scope="module")
def log():
    mdp, target, _ = random_problem(0)
    return mdp, target, mdp.rollout(np.full((5, 2), 0.5), 200, 40, np.random.default_rng(1))


@pytest.mark.parametrize("name", [*WITH_FUNCTIONS, "bch", "gem"])
def test_steps_that_were_never_logged_reach_the_verdict(name):
    mdp, target, _ = random_problem(0)
    behavior, wanted = np.full((5, 2), 0.5), np.array(target)
    behavior[2], wanted[2] = [1.0, 0.0], [0.0, 1.0]
    data = mdp.rollout(behavior, 300, 40, np.random.default_rng(1))
    table = gd.Tabular(5, 2, stand_in=True)
    estimate = gd.evaluate(data, gd.TabularPolicy(wanted), gd.RELATED[name](0.9), functions=table)
    first = gd.evaluate(data, gd.TabularPolicy(wanted), gd.GradientDICE(0.9), functions=table)
    assert (
        estimate.diagnostics.unlogged == pytest.approx(first.diagnostics.unlogged) and first.diagnostics.unlogged > 0.05
    )
    assert str(estimate.verdict) == "do not trust"


@pytest.mark.parametrize("name", [*WITH_FUNCTIONS, "dr", "wdr"])
def test_features_that_miss_something_reach_the_verdict(name):
    transition = np.zeros((20, 2, 20))
    for state in range(20):
        transition[state, 0, max(state - 1, 0)] = transition[state, 1, min(state + 1, 19)] = 1
    reward = np.tile(3 * np.sin(1.3 * np.arange(20))[:, None], (1, 2))
    mdp = gd.mdp.TabularMDP(0.9 * transition + 0.1 / 20, reward, np.eye(20)[0])
    data = mdp.rollout(np.full((20, 2), 0.5), 300, 50, np.random.default_rng(1))
    functions = gd.LinearFeatures(lambda s, a: np.column_stack([np.ones(len(s)), s / 20, a]))
    policy = gd.TabularPolicy(np.tile([0.3, 0.7], (20, 1)))
    estimate = gd.evaluate(data, policy, gd.RELATED[name](0.9), functions=functions)
    assert estimate.diagnostics.bellman_misfit > 10 and str(estimate.verdict) == "do not trust"


@pytest.mark.parametrize("name", ["lstdq", "mwl", "fqe"])
def test_features_that_nobody_chose_are_judged_too(name):
    rng = np.random.default_rng(0)
    states = rng.uniform(-1, 1, size=(3000, 2))
    following = np.clip(states + 0.1 * rng.normal(size=states.shape), -1, 1)
    rewards = np.sign(np.sin(4 * states[:, 0]))
    data = gd.Transitions(states, rng.integers(0, 2, 3000), rewards, following, initial_states=states[:50])
    policy = gd.DiscretePolicy(lambda states: np.tile([0.3, 0.7], (len(states), 1)), 2)
    left_out = gd.evaluate(data, policy, gd.RELATED[name](0.9))
    given = gd.evaluate(data, policy, gd.RELATED[name](0.9), functions=gd.RandomFourier())
    assert left_out.value == given.value
    assert left_out.diagnostics.bellman_misfit == given.diagnostics.bellman_misfit != 0
    assert any("no functions are given" in note for note in left_out.notes)
    assert not any("no functions are given" in note for note in given.notes)


NEEDS_BEHAVIOR = ["is", "pdis", "wis", "wpdis", "dr", "wdr", "magic", "gem", "bch", "discounted-cop-td"]


@pytest.mark.parametrize("name", NEEDS_BEHAVIOR)
def test_behaviour_probabilities_that_cannot_be_right_reach_the_verdict(log, name):
    _, target, data = log
    wrong = replace(data, behavior_log_probs=data.behavior_log_probs - np.log(2))
    policy = gd.TabularPolicy(target)
    right = gd.evaluate(data, policy, gd.RELATED[name](0.8))
    assert not any("behavior_log_probs" in caution for caution in right.cautions)
    estimate = gd.evaluate(wrong, policy, gd.RELATED[name](0.8))
    assert any("average 2 over the log" in caution for caution in estimate.cautions), estimate.cautions
    assert str(estimate.verdict) != "trust"


def test_state_ratios_that_are_normalised_are_trusted_near_discount_1():
    mdp, target = gd.mdp.boyan_chain("continuing"), np.tile([0.1, 0.9], (13, 1))
    data = mdp.rollout(np.full((13, 2), 0.5), 200, 100, np.random.default_rng(3))
    found = gd.evaluate(data, gd.TabularPolicy(target), gd.GEM(0.999))
    assert found.interval[0] < mdp.value(target, 0.999) < found.interval[1] and str(found.verdict) == "trust"
    assert np.mean(found.ratio) == pytest.approx(1.0)
    plain = gd.evaluate(data, gd.TabularPolicy(target), gd.GEM(0.999, self_normalised=False))
    assert str(plain.verdict) == "do not trust"


@pytest.mark.parametrize("kind", [gd.GEM, gd.BCH, gd.DiscountedCOPTD, gd.WDR])
def test_actions_that_are_never_logged_are_not_trusted_with_a_cloned_behaviour(kind):
    transition, reward = np.zeros((3, 2, 3)), np.zeros((3, 2))
    transition[0] = transition[1] = [[0.5, 0.5, 0], [0.1, 0.6, 0.3]]
    transition[2], reward[2, 1] = [[1, 0, 0], [0, 0, 1]], 10.0
    mdp = gd.mdp.TabularMDP(transition, reward, np.eye(3)[0])
    behavior, target = np.full((3, 2), 0.5), np.tile([0.4, 0.6], (3, 1))
    behavior[2], target[2] = [1, 0], [0.1, 0.9]
    data = replace(mdp.rollout(behavior, 300, 40, np.random.default_rng(0)), behavior_log_probs=None)
    estimator = kind(0.9, behavior=gd.BehaviorCloning())
    try:
        estimate = gd.evaluate(data, gd.TabularPolicy(target), estimator)
    except gd.InputError as error:
        assert "never shows" in str(error)  # noqa: PT017 - a refusal is as good
    else:
        assert str(estimate.verdict) != "trust", estimate


def test_features_of_states_that_lose_mass_are_not_trusted():
    """The behaviour never does in one half of the line what the target does there: the ratio's mean shows it."""
    rng = np.random.default_rng(0)
    states = rng.uniform(-1, 1, size=(4000, 1))
    actions = np.where(states[:, 0] > 0.3, 0, rng.integers(0, 2, 4000))
    following = np.clip(states + 0.3 * (2 * actions[:, None] - 1) + 0.1 * rng.normal(size=states.shape), -1, 1)
    rewards = np.where((states[:, 0] > 0.3) & (actions == 1), 5.0, 0.0) + states[:, 0]
    data = gd.Transitions(states, actions, rewards, following, initial_states=states[:50])
    policy = gd.DiscretePolicy(lambda states: np.tile([0.1, 0.9], (len(states), 1)), 2)
    estimator = gd.GEM(0.9, behavior=gd.BehaviorCloning())
    assert str(gd.evaluate(data, policy, estimator, functions=gd.RandomFourier(50)).verdict) != "trust"


def test_state_estimators_with_features_that_nobody_chose_are_not_trusted():
    rng = np.random.default_rng(0)
    states = rng.uniform(-1, 1, size=(500, 2))
    data = gd.Transitions(states, rng.integers(0, 2, 500), states[:, 0], states[::-1], initial_states=states[:50],
                          behavior_log_probs=np.full(500, np.log(0.5)))  # fmt: skip
    policy = gd.DiscretePolicy(lambda states: np.tile([0.3, 0.7], (len(states), 1)), 2)
    estimate = gd.evaluate(data, policy, gd.GEM(0.9))
    assert any("nobody chose the features" in caution for caution in estimate.cautions)


def test_probabilities_with_few_digits_and_small_logs_raise_no_alarm():
    rng = np.random.default_rng(0)
    for rows in (1, 2, 5, 10, 2000):
        for _ in range(100):
            rare = rng.random(rows) < 0.1
            data = gd.Transitions(np.zeros(rows, int), rare.astype(int), np.zeros(rows), np.zeros(rows, int),
                                  behavior_log_probs=np.round(np.log(np.where(rare, 0.1, 0.9)), 3))  # fmt: skip
            same = np.where(rare, 0.1, 0.9) * np.exp(-data.behavior_log_probs)
            assert not ratio_cautions(data, same)
            if rows <= 10:
                assert not ratio_cautions(data, np.where(rare, 1.8, 0.2 / 0.9 + 0.7))


def test_a_ratio_too_large_to_square_is_no_error():
    data = gd.Transitions([0, 0], [0, 1], [0.0, 1.0], [0, 0], behavior_log_probs=[-0.1, -500.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not ratio_cautions(data, np.array([1.0, np.exp(500.0)]))


def test_true_ratios_are_rarely_called_wrong():
    """In 2,000 logs with ratios up to 10, of dependent rows, no more than a handful of false alarms."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(2000):
        rare = rng.random(400) < 0.1
        data = gd.Transitions(np.zeros(400, int), rare.astype(int), np.zeros(400), np.zeros(400, int),
                              behavior_log_probs=np.log(np.where(rare, 0.1, 0.9)))  # fmt: skip
        alarms += bool(ratio_cautions(data, np.where(rare, 9.0, 1 / 9)))
    assert alarms <= 10


def test_another_fixed_point_is_never_trusted(log):
    _, target, data = log
    policy = gd.TabularPolicy(target)
    for estimator, word in (
        (gd.DiscountedCOPTD(0.5), "log"),
        (gd.RegularizedLagrangian(0.9, critic_regularizer=1.0), "bias"),
        (gd.PDIS(0.95), "missing"),
        (gd.MAGIC(0.5), "no interval"),
    ):
        estimate = gd.evaluate(data, policy, estimator)
        assert str(estimate.verdict) != "trust" and any(word in reason for reason in estimate.reasons), estimator
    table = gd.compare(data, policy, [gd.GradientDICE(0.95), gd.PDIS(0.95)])
    assert "missing" in table.set_index("estimator").loc[repr(gd.PDIS(0.95)), "remarks"]


def test_long_episodes_are_not_thin_by_themselves(log):
    """With discount 0 only first steps count, and the target is as dense there as the behaviour allows."""
    _, target, _ = log
    mdp = log[0]
    data = mdp.rollout(np.full((5, 2), 0.5), 500, 60, np.random.default_rng(2))
    estimate = gd.evaluate(data, gd.TabularPolicy(target), gd.DR(0.0))
    assert estimate.diagnostics.thin_mass == 0


def test_a_logged_policy_is_the_same_policy():
    states = np.tile([0, 1], 500)
    actions = np.random.default_rng(0).integers(0, 2, 1000)
    following = np.where(states == 0, 1, 0)
    following[999] = 2  # a state that the log never leaves
    data = gd.Transitions(states, actions, actions.astype(float), following)
    table = np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
    functions = gd.Tabular(3, 2, stand_in=True)
    values = [
        gd.evaluate(data, policy, gd.GradientDICE(1.0), functions=functions).value
        for policy in (gd.TabularPolicy(table), gd.LoggedPolicy(next_probabilities=table[following]))
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-12) and values[0] == pytest.approx(0.3, abs=0.01)
    changing = np.array(table[following])
    changing[0] = [0.2, 0.8]
    with pytest.raises(gd.InputError, match="differ from others for the same state"):
        gd.evaluate(data, gd.LoggedPolicy(next_probabilities=changing), gd.GradientDICE(1.0), functions=functions)


def test_rows_of_weight_0_are_as_if_they_were_not_there(log):
    _, target, data = log
    dropped = (data.states == 2) & (data.actions == 1)
    functions, policy = gd.Tabular(5, 2, stand_in=True), gd.TabularPolicy(target)
    estimate = gd.evaluate(
        replace(data, weights=np.where(dropped, 0.0, 1.0)), policy, discount=0.9, functions=functions
    )
    kept = gd.Transitions(
        data.states[~dropped],
        data.actions[~dropped],
        data.rewards[~dropped],
        data.next_states[~dropped],
        initial_states=data.start_states,
    )
    assert estimate.value == pytest.approx(gd.evaluate(kept, policy, discount=0.9, functions=functions).value, rel=1e-9)
    assert estimate.to_json()


def test_starts_that_were_never_logged_count(log):
    _, target, data = log
    wider = gd.TabularPolicy(np.vstack([target, [[1.0, 0.0]]]))
    table = gd.Tabular(6, 2, stand_in=True)
    half = replace(data, episodes=None, initial_states=np.array([0, 5]))
    assert gd.evaluate(half, wider, discount=0.5, functions=table).diagnostics.unlogged == pytest.approx(0.25)
    with pytest.raises(gd.InputError, match="no row in any of the states"):
        gd.evaluate(replace(half, initial_states=np.array([5])), wider, discount=0.5, functions=table)


def test_unsigned_numbers(log):
    _, target, data = log
    same = replace(data, actions=data.actions.astype(np.uint64), states=data.states.astype(np.uint64))
    for estimator in (gd.LSTDQ(0.9), gd.WPDIS(0.5)):
        values = [
            gd.evaluate(d, gd.TabularPolicy(target), estimator, functions=gd.Tabular(5, 2, stand_in=True)).value
            for d in (data, same)
        ]
        assert values[0] == values[1]


def test_misuse_is_refused_in_words(log):
    _, target, data = log
    policy = gd.TabularPolicy(target)
    for call, words in (
        (lambda: gd.evaluate(data, policy, gd.WIS), r"WIS\(0.9\), not the class"),
        (lambda: gd.evaluate(data, policy, "wis"), "RELATED"),
        (lambda: gd.compare(data, policy, gd.RELATED), "a list"),
        (lambda: gd.compare(data, policy, [gd.WIS]), "not the class"),
        (lambda: gd.compare(data, policy, [gd.WIS(0.9)], functions=gd.MLP()), "one by one"),
        (lambda: gd.evaluate(data, policy, gd.LSTDQ(0.9), functions="table"), "functions must be"),
        (
            lambda: gd.evaluate(data, policy, gd.LSTDQ(0.9), functions=gd.Tabular(5, 3, stand_in=True)),
            "2 actions but the table",
        ),
        (
            lambda: gd.evaluate(
                replace(data, behavior_log_probs=None), policy, gd.GEM(0.9, behavior=gd.BehaviorCloning)
            ),
            "behavior",
        ),
        (lambda: gd.mdp.SparseMDP(np.ones((2, 2, 2)) / 2, np.zeros((2, 2)), [0.5, 0.5]), "reshape"),
    ):
        with pytest.raises(gd.InputError, match=words):
            call()


def test_rows_out_of_order_are_seen_in_vectors_too():
    rng = np.random.default_rng(0)
    states = np.cumsum(rng.normal(size=(50, 21, 1)), axis=1)
    first, then = states[:, :-1].reshape(-1, 1), states[:, 1:].reshape(-1, 1)
    data = gd.Transitions(
        first, rng.integers(0, 2, 1000), first[:, 0], then, episodes=np.repeat(np.arange(50), 20),
        behavior_log_probs=np.full(1000, np.log(0.5)),
    )  # fmt: skip
    policy = gd.DiscretePolicy(lambda s: np.full((len(s), 2), 0.5), 2)
    gd.evaluate(data, policy, gd.PDIS(0.5))
    order = rng.permutation(1000)
    shuffled = gd.Transitions(
        first[order], data.actions[order], data.rewards[order], then[order], episodes=data.episodes[order],
        behavior_log_probs=data.behavior_log_probs,
    )  # fmt: skip
    with pytest.raises(gd.InputError, match="time order"):
        gd.evaluate(shuffled, policy, gd.PDIS(0.5))


def test_endings_do_not_make_a_log_look_singular():
    """The absorbing state's own row has the weight of the endings: a tiny one would give condition numbers of 1e13."""
    rng = np.random.default_rng(2)
    transition = rng.dirichlet(np.ones(6), size=(6, 2))
    transition[5], reward = np.eye(6)[5], rng.normal(size=(6, 2))
    reward[5] = 0
    mdp = gd.mdp.TabularMDP(transition, reward, np.append(rng.dirichlet(np.ones(5)), 0))
    data = mdp.rollout(np.full((6, 2), 0.5), 3000, 100, rng, terminal=5)
    policy = gd.TabularPolicy(np.full((5, 2), 0.5))
    for estimator, most in ((gd.GradientDICE(0.999), 1e3), (gd.LSTDQ(0.99), 1e6)):
        estimate = gd.evaluate(data, policy, estimator)
        assert estimate.status.ok and estimate.diagnostics.condition_number < most
