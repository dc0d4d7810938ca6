"""Values that are computed when first asked for, and the improvement, which is one of them."""

import copy
import gc
import pickle
import weakref
from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.evaluation.later import Later
from problems import known

POLICY = gd.DiscretePolicy(lambda states: np.tile([0.3, 0.7], (len(states), 1)), 2)
FEATURES = gd.LinearFeatures(lambda states, actions: np.column_stack([states, actions, np.ones(len(states))]))


def rows() -> gd.Transitions:
    """Continuous states without episodes: the behaviour's value needs a search for features."""
    rng = np.random.default_rng(0)
    states, actions = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    after = 0.5 * states + 0.3 * actions[:, None] + 0.1 * rng.normal(size=(200, 2))
    return gd.Transitions(states, actions, states[:, 0] + actions, after, initial_states=states[:50])


def answered() -> gd.Estimate:
    return gd.evaluate(rows(), POLICY, discount=0.9, functions=FEATURES)


class Counted:
    """Counts how often it is called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        return 42


def test_a_later_value_is_computed_once_for_all_copies():
    make = Counted()
    later = Later(make)
    same = [copy.copy(later), copy.deepcopy(later), later]
    assert make.calls == 0 and not later.is_known
    assert [each.value for each in same] == [42, 42, 42]
    assert make.calls == 1 and later.is_known


def test_a_later_value_lets_go_of_what_it_was_computed_from():
    make = Counted()
    held, later = weakref.ref(make), Later(make)
    del make
    assert held() is not None and later.value == 42
    assert held() is None


def test_a_failed_computation_is_tried_again():
    tries = iter([gd.InputError("not yet"), 42])

    def make() -> int:
        found = next(tries)
        if isinstance(found, Exception):
            raise found
        return found

    later = Later(make)
    with pytest.raises(gd.InputError, match="not yet"):
        _ = later.value
    assert not later.is_known and later.value == 42


def test_pickling_computes_the_value():
    later = Later(lambda: 42)  # a lambda cannot be pickled
    again = pickle.loads(pickle.dumps(later))
    assert again.is_known and again.value == 42


def test_the_behaviours_value_is_not_computed_before_it_is_asked_for():
    estimate = answered()
    assert estimate.interval is not None and estimate.metrics() and len(estimate.to_frame()) == 1
    assert not estimate.behavior_side.is_known
    found = known(estimate.improvement)
    assert estimate.behavior_side.is_known and estimate.improvement is found
    assert found.value == pytest.approx(estimate.value - found.baseline)


@pytest.mark.parametrize("show", [str, gd.Estimate.to_json, repr, gd.Estimate.rows])
def test_whatever_shows_an_estimate_shows_its_improvement(show):
    estimate = answered()
    assert "improvement" in str(show(estimate))
    assert estimate.behavior_side.is_known


def test_repr_shows_the_improvement_itself():
    estimate = answered()
    assert known(estimate.improvement).text in repr(estimate)


def test_copies_share_the_behaviours_value():
    estimate = answered()
    other = replace(estimate, notes=("changed",))
    assert not other.behavior_side.is_known
    expected = known(estimate.improvement)
    assert other.behavior_side.is_known
    for copied in (other, copy.copy(estimate), copy.deepcopy(estimate)):
        assert known(copied.improvement).interval == expected.interval


def test_a_pickled_estimate_has_its_improvement():
    estimate = answered()
    again = pickle.loads(pickle.dumps(estimate))
    assert known(again.improvement).interval == known(answered().improvement).interval
    assert str(again) == str(estimate)


def test_the_log_is_held_until_the_behaviours_value_is_known():
    data = rows()
    held = weakref.ref(data)
    estimate = gd.evaluate(data, POLICY, discount=0.9, functions=FEATURES)
    del data
    gc.collect()
    assert held() is not None
    assert estimate.improvement is not None
    gc.collect()
    assert held() is None


def test_policies_of_one_log_share_the_behaviours_value():
    other = gd.DiscretePolicy(lambda states: np.tile([0.6, 0.4], (len(states), 1)), 2)
    ranking = gd.rank(rows(), {"one": POLICY, "other": other}, 0.9, baseline="one", functions=FEATURES)
    one, another = ranking.estimates["one"], ranking.estimates["other"]
    assert one.behavior_side is another.behavior_side and not one.behavior_side.is_known
