"""A table far larger than the log gives the answers of a table over the states that the log shows."""

import numpy as np
import pytest

import gradientdice as gd
from problems import known

STATES = 10**9


def log_of_few(seed=0, ends=False):
    """A log over 40 states, and the same log with those states at far places of a huge table."""
    rng = np.random.default_rng(seed)
    names = np.sort(rng.choice(STATES, 40, replace=False))
    states, actions = rng.integers(0, 40, 4000), rng.integers(0, 3, 4000)
    following = (states * 7 + actions + rng.integers(0, 2, 4000)) % 40
    more = {"behavior_log_probs": np.full(4000, np.log(1 / 3))}
    if ends:
        more["terminated"] = rng.random(4000) < 0.1
    rewards = np.sin(states) + actions
    few = gd.Transitions(states, actions, rewards, following, initial_states=[0, 5], **more)
    far = np.where(more["terminated"], STATES + 7, names[following]) if ends else names[following]
    many = gd.Transitions(names[states], actions, rewards, far, initial_states=names[[0, 5]], **more)
    table = rng.dirichlet(np.ones(3), 40)
    anywhere = gd.DiscretePolicy(lambda where: table[np.searchsorted(names, where)], 3)
    return few, gd.TabularPolicy(table), many, anywhere


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("kind", [gd.GradientDICE, gd.LSTDQ, gd.GEM, gd.DiscountedCOPTD, gd.MWL, gd.FQE])
def test_the_answer_is_that_of_the_states_seen(kind, ends):
    few, table, many, anywhere = log_of_few(ends=ends)
    small = gd.evaluate(few, table, kind(0.9), functions=gd.Tabular(40, 3, stand_in=True))
    large = gd.evaluate(many, anywhere, kind(0.9), functions=gd.Tabular(STATES, 3))
    assert large.value == pytest.approx(small.value, rel=1e-12)
    assert large.interval == pytest.approx(small.interval, rel=1e-9)
    np.testing.assert_allclose(known(large.ratio), known(small.ratio), rtol=1e-9)
    assert str(STATES) in large.functions
    # What is said about states uses the log's own numbers.
    assert {move.where for move in large.movements} <= {f"state {state}" for state in many.states}


def test_comparing_needs_no_array_of_the_tables_size():
    _, _, many, anywhere = log_of_few()
    estimators = [gd.GradientDICE(0.9), gd.LSTDQ(0.9)]
    table = gd.compare(many, anywhere, estimators, functions=gd.Tabular(STATES, 3))
    assert table["note"].tolist() == [""] * 3
    assert np.std(table["value"]) < 0.1


def test_states_outside_are_named_as_the_log_has_them():
    _, _, many, anywhere = log_of_few()
    with pytest.raises(gd.InputError, match=r"states must lie in 0 to 1999999; row \d+ is \d{7,}"):
        gd.evaluate(many, anywhere, discount=0.9, functions=gd.Tabular(2_000_000, 3))


def test_functions_that_an_estimator_brings_along_see_the_logs_own_states():
    few, table, many, anywhere = log_of_few()
    names = np.unique(many.states)
    seen = gd.LinearFeatures(lambda states, actions: np.eye(120)[np.searchsorted(names, states) * 3 + actions])
    small = gd.evaluate(few, table, gd.BlackBox(1.0))
    for functions in (seen, gd.Tabular(STATES, 3)):
        own = gd.evaluate(many, anywhere, gd.BlackBox(1.0, kernel=seen), functions=functions)
        assert own.value == pytest.approx(small.value, rel=1e-6)


def test_states_with_two_dimensions_are_refused():
    rng = np.random.default_rng(0)
    states = rng.integers(0, 9, size=(50, 1))
    data = gd.Transitions(states, rng.integers(0, 3, 50), np.zeros(50), states, initial_states=states[:2],
                          terminated=np.zeros(50, bool))  # fmt: skip
    policy = gd.DiscretePolicy(lambda states: np.full((len(states), 3), 1 / 3), 3)
    with pytest.raises(gd.InputError, match=r"shape \(n,\) for a table"):
        gd.evaluate(data, policy, discount=0.9, functions=gd.Tabular(STATES, 3))


@pytest.mark.parametrize("states", [STATES, 2**62])
def test_a_huge_table_without_restriction_is_answered_if_all_is_logged(states):
    few, table, many, anywhere = log_of_few()
    small = gd.evaluate(few, table, discount=0.9)
    large = gd.evaluate(many, anywhere, discount=0.9, functions=gd.Tabular(states, 3, stand_in=False))
    assert large.value == pytest.approx(small.value, rel=1e-12)


def test_the_moments_of_a_huge_table_are_refused():
    _, _, many, anywhere = log_of_few()
    with pytest.raises(gd.InputError, match="too large: use evaluate"):
        gd.Moments.from_transitions(many, anywhere, gd.Tabular(STATES, 3))


def test_few_states_with_large_numbers_are_a_table_by_themselves():
    few, table, many, anywhere = log_of_few()
    small = gd.evaluate(few, table, discount=0.9, functions=gd.Tabular(40, 3))
    assert gd.evaluate(many, anywhere, discount=0.9).value == pytest.approx(small.value, rel=1e-9)


def test_a_policy_known_at_the_logs_states_alone():
    few, table, many, _ = log_of_few()
    logged = gd.LoggedPolicy(table.probabilities_at(few.next_states), table.probabilities_at(known(few.initial_states)))
    small = gd.evaluate(few, table, discount=0.9, functions=gd.Tabular(40, 3, stand_in=True))
    assert gd.evaluate(many, logged, discount=0.9, functions=gd.Tabular(STATES, 3)).value == pytest.approx(small.value)
