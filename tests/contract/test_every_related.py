"""What every other estimator owes: one table of tests over gd.RELATED."""

from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

import gradientdice as gd
from conftest import random_problem

EVERY = sorted(gd.RELATED)
AVERAGE_ONLY = {"black-box", "cop-td"}


def discount_of(name):
    return 1.0 if name in AVERAGE_ONLY else 0.8


def rollouts(episodes=60, horizon=30, seed=0):
    mdp, target, _ = random_problem(seed)
    behavior = 0.5 * target + 0.25
    return mdp, target, mdp.rollout(behavior, episodes, horizon, np.random.default_rng(seed))


@pytest.mark.parametrize("name", EVERY)
def test_is_a_frozen_dataclass_with_checked_numbers(name):
    estimator = gd.RELATED[name](0.9)
    assert is_dataclass(estimator) and hash(estimator) == hash(gd.RELATED[name](0.9))
    assert getattr(gd, type(estimator).__name__) is type(estimator)
    for bad in (-0.1, 1.1, float("nan"), "0.9"):
        with pytest.raises(gd.InputError, match="discount"):
            replace(estimator, discount=bad)
    for field in fields(estimator):
        if isinstance(getattr(estimator, field.name), float):
            with pytest.raises(gd.InputError, match=field.name):
                replace(estimator, **{field.name: -1.0})


@pytest.mark.parametrize("name", EVERY)
def test_docstring_names_the_paper(name):
    module = __import__(gd.RELATED[name].__module__, fromlist=["x"])
    assert "References:" in module.__doc__


@pytest.mark.parametrize("name", EVERY)
def test_answers_a_log_of_trajectories(name):
    mdp, target, data = rollouts(400, 40)
    discount = discount_of(name)
    estimate = gd.evaluate(data, gd.TabularPolicy(target), gd.RELATED[name](discount))
    assert np.isfinite(estimate.value)
    # Discounted COP-TD restarts from the data's own distribution; IS has no chance over 40 steps.
    if name not in ("discounted-cop-td", "is"):
        assert estimate.value == pytest.approx(mdp.value(target, discount), abs=0.25)
    if estimate.ratio is not None:
        assert estimate.ratio.shape == (len(data),) and np.isfinite(estimate.ratio).all()
    assert isinstance(str(estimate), str) and estimate.to_json()


@pytest.mark.parametrize("name", EVERY)
def test_the_same_seed_gives_the_same_bits(name):
    _, target, data = rollouts()
    values = [
        gd.evaluate(data, gd.TabularPolicy(target), gd.RELATED[name](discount_of(name)), seed=3).value for _ in "ab"
    ]
    assert values[0] == values[1]


def degenerate_logs():
    yield "one row", gd.Transitions([0], [0], [1.0], [0], episodes=[0], behavior_log_probs=[0.0])
    yield "one episode", rollouts(1, 30)[2]
    yield "one state", gd.Transitions([0] * 6, [0, 1] * 3, [1.0, 0.0] * 3, [0] * 6, episodes=[0, 0, 0, 1, 1, 1])
    yield "no behaviour", replace(rollouts()[2], behavior_log_probs=None)
    yield "no episodes", replace(rollouts()[2], episodes=None)
    data = rollouts()[2]
    yield "one action", replace(data, actions=np.zeros(len(data), dtype=int))
    yield "huge rewards", replace(data, rewards=1e200 * data.rewards)
    yield (
        "ends at once",
        replace(data, terminated=np.ones(len(data), dtype=bool), truncated=None, episodes=np.arange(len(data))),
    )


DEGENERATE = list(degenerate_logs())


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("kind,data", DEGENERATE, ids=[kind for kind, _ in DEGENERATE])
@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_degenerate_log_is_answered_or_refused_and_never_breaks(name, kind, data):
    states = 1 if kind in ("one row", "one state") else 5
    policy = gd.TabularPolicy(np.tile([0.3, 0.7], (states, 1)))
    for discount in (0.8, 1.0):
        try:
            estimate = gd.evaluate(data, policy, gd.RELATED[name](discount))
        except gd.InputError as error:
            assert len(str(error)) > 30
            continue
        assert np.isfinite(estimate.value) or not estimate.status.ok


@pytest.mark.parametrize("name", EVERY)
def test_continuous_actions_are_answered_or_refused(name):
    rng = np.random.default_rng(0)
    path, actions = np.cumsum(0.3 * rng.normal(size=(30, 11, 2)), axis=1), rng.normal(size=(300, 1))
    states, following = path[:, :-1].reshape(300, 2), path[:, 1:].reshape(300, 2)
    data = gd.Transitions(states, actions, states[:, 0], following, episodes=np.arange(300) // 10)
    policy = gd.SamplingPolicy(lambda s, g: g.normal(size=(len(s), 1)))
    try:
        estimate = gd.evaluate(data, policy, gd.RELATED[name](discount_of(name)), functions=gd.RandomFourier(20))
        assert np.isfinite(estimate.value)
    except gd.InputError as error:
        assert "discrete actions" in str(error) or "actions" in str(error)


def test_compare_shows_every_estimator_and_says_why_not():
    _, target, data = rollouts()
    for discount in (0.8, 1.0):
        every = [kind(discount) for kind in {**gd.ESTIMATORS, **gd.RELATED}.values()]
        bare = replace(data, behavior_log_probs=None, episodes=None, initial_states=data.states[::30])
        table = gd.compare(bare, gd.TabularPolicy(target), every)
        assert len(table) == len(every) + 1
        answered = table["value"].notna()
        assert (table["note"][~answered].str.startswith("not applicable: ")).all() and (
            table["note"][answered] == ""
        ).all()
        assert np.isfinite(table["value"][answered].astype(float)).all()
        assert (table["choice"] == "use this").sum() == 1
