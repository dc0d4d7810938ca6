"""Misuse that is refused in words."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.base import arrays
from problems import known, random_problem


@pytest.fixture(scope="module")
def log():
    mdp, target, _ = random_problem(0)
    return mdp, target, mdp.rollout(np.full((5, 2), 0.5), 200, 40, np.random.default_rng(1))


def test_misuse_is_refused_in_words(log):
    _, target, data = log
    policy = gd.TabularPolicy(target)
    kind: Any = gd.WIS
    name: Any = "wis"
    registry: Any = gd.ESTIMATORS
    cloning: Any = gd.BehaviorCloning
    for call, words in (
        (lambda: gd.evaluate(data, policy, kind), r"WIS\(0.9\), not the class"),
        (lambda: gd.evaluate(data, policy, name), "ESTIMATORS"),
        (lambda: gd.compare(data, policy, registry), "a list"),
        (lambda: gd.compare(data, policy, [kind]), "not the class"),
        (lambda: gd.compare(data, policy, [gd.WIS(0.9)], functions=gd.MLP()), "one by one"),
        (lambda: gd.evaluate(data, policy, gd.LSTDQ(0.9), functions=name), "functions must be"),
        (
            lambda: gd.evaluate(data, policy, gd.LSTDQ(0.9), functions=gd.Tabular(5, 3, stand_in=True)),
            "2 actions but the table",
        ),
        (
            lambda: gd.evaluate(replace(data, behavior_log_probs=None), policy, gd.GEM(0.9, behavior=cloning)),
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
        first[order], data.actions[order], data.rewards[order], then[order], episodes=known(data.episodes)[order],
        behavior_log_probs=data.behavior_log_probs,
    )  # fmt: skip
    with pytest.raises(gd.InputError, match="time order"):
        gd.evaluate(shuffled, policy, gd.PDIS(0.5))


def test_one_row_or_one_episode_gets_a_clear_refusal():
    policy = gd.TabularPolicy([[1.0]])
    with pytest.raises(gd.InputError, match="one row or one episode"):
        gd.evaluate(gd.Transitions([0], [0], [1.0], [0]), policy, discount=1.0)
    with pytest.raises(gd.InputError, match="one row or one episode"):
        gd.evaluate(gd.Transitions([0, 0], [0, 0], [1.0, 2.0], [0, 0], episodes=[1, 1]), policy, discount=1.0)


def test_hard_constraints_seeds_and_misnamed_files_are_refused_clearly(tmp_path, rng):
    mdp, target, data_dist = random_problem(0)
    data, policy = mdp.sample(200, data_dist, rng), gd.TabularPolicy(target)
    with pytest.raises(gd.InputError, match="finite norm_penalty"):
        gd.evaluate(
            data, policy, gd.GradientDICE(0.9, np.inf), functions=gd.Tabular(5, 2), solver=gd.ProjectedPrimalDual(10)
        )
    with pytest.raises(gd.InputError, match="seed must be at least 0"):
        gd.evaluate(data, policy, discount=0.9, seed=-1)
    np.save(tmp_path / "array.npy", np.zeros(3))
    (tmp_path / "array.npy").rename(tmp_path / "array.npz")
    with pytest.raises(gd.InputError, match="not a readable"):
        gd.load(tmp_path / "array.npz")


def test_what_is_missing_is_named(log):
    _, target, data = log
    lacking = gd.LoggedPolicy(target[data.next_states])
    with pytest.raises(gd.InputError, match="LoggedPolicy is not given at the initial states.*200 rows"):
        gd.evaluate(data, lacking, discount=0.9)
    with pytest.raises(gd.InputError, match="none are known: give initial_states"):
        gd.evaluate(replace(data, episodes=None), gd.TabularPolicy(target), discount=0.9)
    one_hot = replace(data, actions=np.eye(2)[data.actions])
    with pytest.raises(gd.InputError, match="one-hot.*argmax"):
        gd.evaluate(one_hot, gd.TabularPolicy(target), discount=0.9)


@pytest.mark.parametrize("wrong", [{"interval": "normal"}, {"solver": "closed"}, {"progress": 1}, {"checkpoint": 3}])
def test_words_and_numbers_in_place_of_objects(log, wrong: Any):
    _, target, data = log
    with pytest.raises(gd.InputError, match=next(iter(wrong))):
        gd.evaluate(data, gd.TabularPolicy(target), discount=0.9, **wrong)


def test_a_million_actions_are_refused_before_their_memory_is_taken(monkeypatch):
    monkeypatch.setattr(arrays, "free_memory", lambda: 2.0**30)
    states = np.random.default_rng(0).normal(size=(200, 2))
    data = gd.Transitions(states, np.arange(200), states[:, 0], states, states[:5])
    policy = gd.DiscretePolicy(lambda given: np.full((len(given), 10**6), 1e-6), 10**6)
    for functions in (gd.RandomFourier(50), gd.MLP()):
        with pytest.raises(gd.InputError, match="would take .* GiB"):
            gd.evaluate(data, policy, gd.GradientDICE(0.9), functions=functions)
