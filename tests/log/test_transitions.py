"""A log: what it accepts, what it refuses, and where episodes start."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import gradientdice as gd
from problems import known, random_problem

GOOD = {"states": [0, 1, 2], "actions": [0, 1, 0], "rewards": [0.0, 1.0, 2.0], "next_states": [1, 2, 0]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rewards": [0.0, float("nan"), 1.0]}, "rewards has a value that is not finite, first in row 1"),
        ({"states": [[0.0], [np.inf], [1.0]], "next_states": [[0.0], [0.0], [1.0]]}, "states .* row 1"),
        ({"rewards": [0.0, 1.0]}, "rewards has 2 rows but states has 3"),
        ({"rewards": [[0.0], [1.0], [2.0]]}, r"rewards must have shape \(3,\)"),
        ({"next_states": [[1], [2], [0]]}, "next_states has rows of shape"),
        ({"states": np.zeros((3, 2, 2)), "next_states": np.zeros((3, 2, 2))}, "one or two dimensions"),
        ({"states": [], "actions": [], "rewards": [], "next_states": []}, "empty"),
        ({"states": ["a", "b", "c"]}, "must hold numbers"),
        ({"rewards": 1.0}, "not the single value"),
        ({"weights": [1, -1, 1]}, "weights must not be negative; row 1"),
        ({"weights": [0, 0, 0]}, "all zero"),
        ({"terminated": [0, 2, 0]}, "terminated must be true or false; row 1"),
        ({"episodes": [0.5, 1.0, 1.0]}, "episodes must be whole numbers"),
        ({"initial_states": []}, "initial_states is empty"),
        ({"initial_states": [[0, 1]]}, "initial_states has rows of shape"),
        ({"behavior_log_probs": [0.0, -np.inf, 0.0]}, "behavior_log_probs .* row 1"),
        ({"states": None}, "states is None"),
        (
            {"rewards": np.ma.MaskedArray([0.0, -999.0, 1.0], [False, True, False])},
            "rewards has a masked value, first in row 1",
        ),
        (
            {"next_states": np.ma.MaskedArray([1, 2, 0], [False, True, False])},
            "next_states has a masked value, first in row 1",
        ),
        ({"states": np.zeros((3, 0)), "next_states": np.zeros((3, 0))}, "states has rows without numbers"),
        ({"actions": np.zeros((3, 0))}, "actions has rows without numbers"),
        ({"states": [0.0, 1e200, 1.0]}, "states has a number beyond 1e\\+100, first in row 1"),
        ({"weights": [1.0, 1e200, 1.0]}, "weights has a number beyond"),
        ({"rewards": [0.0, 1j, 1.0]}, "complex"),
        ({"states": [[0], [1, 2], [3]]}, "different lengths"),
        ({"actions": ["left", "right", "left"]}, "number them in the order of the policy's columns"),
        ({"terminated": ["yes", "no", "perhaps"]}, "terminated must be true or false; row 2"),
        ({"next_states": None, "truncated": [0, 0, 1]}, "truncated is for logs with next_states"),
    ],
)
def test_bad_logs_are_refused_by_field_and_row(change, message):
    with pytest.raises(gd.InputError, match=message):
        gd.Transitions(**{**GOOD, **change})


def test_what_is_plain_in_another_form_is_converted():
    log = gd.Transitions(
        **GOOD, terminated=["no", "Yes", "no"], truncated=[False, True, True], episodes=["b", "b", "a"]
    )
    assert known(log.terminated).tolist() == [False, True, False]
    assert known(log.truncated).tolist() == [False, False, True], "an episode that ended was not cut"
    assert known(log.episodes).tolist() == [0, 0, 1], "numbered in the order in which they appear"
    assert known(gd.Transitions(**GOOD, episodes=[1.0, 1.0, 2.0]).episodes).dtype.kind == "i"


def test_what_follows_an_end_may_be_masked():
    following = np.ma.MaskedArray([1, -999, 0], [False, True, False])
    log = gd.Transitions(**{**GOOD, "next_states": following}, terminated=[0, 1, 0])
    assert log.next_states.tolist() == [1, 1, 0] and log.next_states.dtype.kind == "i"


def test_a_bandit_needs_no_next_states():
    rng = np.random.default_rng(0)
    states, actions = rng.integers(0, 3, 4000), rng.integers(0, 2, 4000)
    rewards = (states + 1) * actions + rng.normal(size=4000)
    log = gd.Transitions(states, actions, rewards, None)
    assert log.ended.all() and len(known(log.start_states)) == 4000
    estimate = gd.evaluate(log, gd.TabularPolicy([[0.2, 0.8]] * 3), discount=0.0)
    assert estimate.interval is not None and estimate.interval[0] < 0.8 * 2 < estimate.interval[1]


def test_a_log_is_immutable_and_apart_from_its_source():
    rewards = np.array([0.0, 1.0, 2.0])
    log = gd.Transitions(**{**GOOD, "rewards": rewards})
    rewards[0] = 99
    assert log.rewards[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        log.rewards[0] = 1
    with pytest.raises(AttributeError):
        setattr(log, "rewards", rewards)  # noqa: B010 - pyright knows that it cannot be assigned


def test_start_states_come_from_episodes():
    log = gd.Transitions(**GOOD, episodes=[7, 7, 3])
    assert sorted(known(log.start_states)) == [0, 2]
    assert gd.Transitions(**GOOD).start_states is None
    assert list(known(gd.Transitions(**GOOD, episodes=[7, 7, 3], initial_states=[5]).start_states)) == [5]


class TestStartStates:
    """Without initial states an episode's first row says where it began, if the rows are in time order."""

    def rollout(self, fraction=False):
        mdp, _, _ = random_problem(0)
        data = mdp.rollout(np.full((5, 2), 0.5), 50, 20, np.random.default_rng(0))
        if not fraction:
            return replace(data, initial_states=None)
        places = np.random.default_rng(1).normal(size=(5, 2))
        rounded = places[data.next_states].astype(np.float32).astype(float)  # stored with fewer digits
        return replace(data, initial_states=None, states=places[data.states], next_states=rounded)

    @pytest.mark.parametrize("fraction", [False, True])
    def test_first_rows(self, fraction):
        data = self.rollout(fraction)
        np.testing.assert_array_equal(data.start_states, data.states[::20])

    @pytest.mark.parametrize("fraction", [False, True])
    def test_shuffled_rows_have_no_known_start(self, fraction):
        data = self.rollout(fraction)
        rows = np.random.default_rng(2).permutation(len(data))
        shuffled = gd.Transitions(
            data.states[rows], data.actions[rows], data.rewards[rows], data.next_states[rows],
            episodes=known(data.episodes)[rows],
        )  # fmt: skip
        assert shuffled.start_states is None
        given = replace(shuffled, initial_states=data.start_states)
        np.testing.assert_array_equal(given.start_states, data.start_states)
        if not fraction:
            policy = gd.TabularPolicy(np.full((5, 2), 0.5))
            with pytest.raises(gd.InputError, match="episodes with their rows in time order"):
                gd.evaluate(shuffled, policy, discount=0.9)
            ordered, mixed = (gd.evaluate(log, policy, discount=1.0) for log in (data, shuffled))
            assert mixed.value == pytest.approx(ordered.value, rel=1e-9)

    @pytest.mark.parametrize(("states", "staying"), [(2, 0.5), (3, 0.9), (5, 0.9)])
    def test_chance_does_not_pass_for_order(self, states, staying):
        """In a small or slow chain many rows of a shuffled log seem to follow each other."""
        transition = np.repeat((staying * np.eye(states) + (1 - staying) / states)[:, None], 2, axis=1)
        mdp = gd.mdp.TabularMDP(transition, np.zeros((states, 2)), np.eye(states)[0])
        data = replace(mdp.rollout(np.full((states, 2), 0.5), 40, 30, np.random.default_rng(0)), initial_states=None)
        assert (data.start_states == 0).all()
        rows = np.random.default_rng(1).permutation(len(data))
        columns = (data.states, data.actions, data.rewards, data.next_states)
        assert (
            gd.Transitions(*(column[rows] for column in columns), episodes=known(data.episodes)[rows]).start_states
            is None
        )

    @pytest.mark.parametrize("times", [2, 3])
    def test_rows_that_are_there_several_times_are_in_order(self, times):
        data = self.rollout()
        columns = (data.states, data.actions, data.rewards, data.next_states)
        again = gd.Transitions(*(np.repeat(x, times) for x in columns), episodes=np.repeat(known(data.episodes), times))
        np.testing.assert_array_equal(again.start_states, data.start_states)

    def test_columns_that_do_not_vary_and_few_digits(self):
        data = self.rollout(fraction=True)
        states, following = (np.column_stack([np.full(len(data), 0.1), x]) for x in (data.states, data.next_states))
        for kind in (np.float32, np.float16):
            log = replace(data, states=states.astype(kind).astype(float), next_states=following.astype(kind))
            assert log.start_states is not None

    def test_starts_are_read_only_and_survive_a_copy(self):
        data = self.rollout()
        with pytest.raises(ValueError, match="read-only"):
            known(data.start_states)[0] = 3
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(data)).start_states, data.start_states)

    def test_steps_that_are_led_elsewhere_do_not_hide_the_starts(self):
        data = self.rollout()
        led = data.redirected(np.zeros(len(data), dtype=int), data.start_states)
        np.testing.assert_array_equal(led.start_states, data.start_states)

    def test_episodes_may_interleave(self):
        data = self.rollout()
        rows = np.lexsort(
            [known(data.episodes), np.arange(len(data)) % 20]
        )  # the first step of all, then the second, …
        mixed = gd.Transitions(
            data.states[rows], data.actions[rows], data.rewards[rows], data.next_states[rows],
            episodes=known(data.episodes)[rows],
        )  # fmt: skip
        np.testing.assert_array_equal(mixed.start_states, data.start_states)

    def test_a_step_after_an_end_may_begin_anywhere(self):
        data = gd.Transitions([0, 1, 2, 3], [0] * 4, [0.0] * 4, [9, 9, 9, 9], terminated=[1] * 4, episodes=[0] * 4)
        np.testing.assert_array_equal(data.start_states, [0])
