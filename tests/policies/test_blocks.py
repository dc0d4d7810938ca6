"""Policies are asked at many states in blocks, and answer as if asked at once."""

import numpy as np
import pytest

import gradientdice as gd
from gradientdice.policies.blocks import ROWS

MANY = 2 * ROWS + 5
STATES = np.linspace(-1, 1, MANY)[:, None]


def probabilities(states):
    share = 1 / (1 + np.exp(-states[:, 0]))
    return np.column_stack([share, 1 - share])


def test_no_call_has_more_states_than_a_block():
    sizes = []

    def counted(states):
        sizes.append(len(states))
        return probabilities(states)

    found = gd.DiscretePolicy(counted, 2).probabilities_at(STATES)
    assert sizes == [ROWS, ROWS, 5]
    assert np.array_equal(found, probabilities(STATES))


def test_draws_are_those_of_one_call():
    policy = gd.SamplingPolicy(lambda states, rng: states + rng.normal(size=states.shape))
    found = policy.sample(STATES, np.random.default_rng(3))
    assert np.array_equal(found, STATES + np.random.default_rng(3).normal(size=STATES.shape))


def test_functions_of_jax_draw_anew_in_each_block():
    import jax

    policy = gd.SamplingPolicy(lambda states, key: jax.random.normal(key, (len(states), 1)), jax=True)
    found = policy.sample(STATES, np.random.default_rng(0))
    assert found.shape == (MANY, 1)
    assert abs(np.corrcoef(found[:ROWS, 0], found[ROWS : 2 * ROWS, 0])[0, 1]) < 5 / ROWS**0.5


def test_no_state_is_one_call():
    assert gd.DiscretePolicy(probabilities, 2).probabilities_at(STATES[:0]).shape == (0, 2)


def test_an_error_names_the_row_among_all_states():
    def broken(states):
        return np.where(states[:, :1] == STATES[ROWS + 7], np.nan, probabilities(states))

    with pytest.raises(gd.InputError, match=f"row {ROWS + 7}"):
        gd.DiscretePolicy(broken, 2).probabilities_at(STATES)


def test_shapes_that_change_are_refused():
    policy = gd.SamplingPolicy(lambda states, rng: states if len(states) == ROWS else states[:, 0])
    with pytest.raises(gd.InputError, match="for some states and"):
        policy.sample(STATES, np.random.default_rng(0))
