"""Draws of sources: the MDP's frequencies, a log's weights, restarts at discount 1, several steps at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gradientdice as gd
from conftest import random_problem
from gradientdice.dice.stochastic.sources import (
    MOST_AT_ONCE,
    Drawn,
    LogSource,
    MDPSource,
    NetworkSource,
    largest_divisor,
    piece_length,
    scan_steps,
)
from gradientdice.functions.rows import as_dense
from gradientdice.problem.design import whole_design
from gradientdice.problem.inputs import network_inputs
from problems import known


def test_draws_have_the_mdps_frequencies():
    mdp, target, data_dist = random_problem(2)
    source = MDPSource.create(mdp, target, data_dist, None)
    n = 200_000
    drawn = np.asarray(source.sample(jax.random.key(0), n))
    joint = np.zeros((10, 10))
    np.add.at(joint, (drawn[:, 0], drawn[:, 1]), 1 / n)
    expected = data_dist.ravel()[:, None] * mdp.pair_chain(target)
    np.testing.assert_allclose(joint, expected, atol=5 * np.sqrt(expected.max() / n))
    starts = np.bincount(drawn[:, 2], minlength=10) / n
    np.testing.assert_allclose(starts, (mdp.initial[:, None] * target).ravel(), atol=5 * np.sqrt(0.25 / n))


def ending_log():
    return gd.Transitions(
        [0, 1, 0, 1],
        [0, 0, 0, 0],
        [1.0, 0, 0, 0],
        [1, 0, 1, 0],
        initial_states=[0],
        terminated=np.array([False, True, False, True]),
        weights=[1, 2, 3, 4],
    )


def test_a_log_is_drawn_by_weight_and_restarts_at_discount_1(rng):
    design = whole_design(ending_log(), gd.TabularPolicy(np.ones((2, 1))), gd.Tabular(2, 1), rng)
    discounted, average = LogSource.create(design, 0.9), LogSource.create(design, 1.0)
    drawn = average.sample(jax.random.key(0), 20_000)
    shares = np.bincount(np.asarray(drawn[:, 0]), minlength=4) / 20_000
    np.testing.assert_allclose(shares, [0.1, 0.2, 0.3, 0.4], atol=0.02)
    rows = jax.numpy.array([[0, 0, 0], [1, 0, 0]])
    after = as_dense(discounted.rows(rows).following.matrix(3))
    np.testing.assert_array_equal(after, [[0, 1, 0], [0, 0, 1]])  # the second went to the absorbing state
    again = as_dense(average.rows(rows).following.matrix(3))
    np.testing.assert_array_equal(again, [[0, 1, 0], [1, 0, 0]])  # and here it restarted in state 0
    assert len(discounted.current) == 5 and len(average.current) == 4


def test_networks_are_given_the_same_rows(rng):
    """Rows by weight; the end leads to the absorbing input below discount 1, and to an initial state at 1."""
    inputs = network_inputs(ending_log(), gd.TabularPolicy(np.ones((2, 1))), 1, rng)
    average = NetworkSource.create(inputs, 1.0)
    batch = average.batch(average.numbers(jax.random.key(1), 20_000))
    np.testing.assert_allclose(np.bincount(batch.row, minlength=4) / 20_000, [0.1, 0.2, 0.3, 0.4], atol=0.02)
    row, following = np.asarray(batch.row), np.asarray(batch.following)
    np.testing.assert_array_equal(
        following[row == 1], np.broadcast_to(known(inputs.initial)[0], following[row == 1].shape)
    )
    np.testing.assert_array_equal(following[row == 2], np.broadcast_to(inputs.following[2], following[row == 2].shape))
    discounted = NetworkSource.create(inputs, 0.9)
    batch = discounted.batch(discounted.numbers(jax.random.key(1), 1000))
    ended = np.asarray(batch.following)[np.asarray(batch.row) == 1]
    assert (ended[..., -1] == 1).all() and (ended[..., :-1] == 0).all()


def test_a_block_of_draws_depends_on_its_first_step_alone(rng):
    """So that a run that goes on from a checkpoint sees what it would have seen."""
    mdp, target, data_dist = random_problem(2)
    rows = MDPSource.create(mdp, target, data_dist, None)
    networks = NetworkSource.create(network_inputs(ending_log(), gd.TabularPolicy(np.ones((2, 1))), 1, rng), 0.9)
    for source in (rows, networks):
        first, again, later, other = (
            np.asarray(drawn.row if isinstance(drawn, Drawn) else drawn)
            for drawn in (source.draw(*given, 10, 4) for given in ((3, 20), (3, 20), (3, 30), (4, 20)))
        )
        assert first.shape[0] == 10 and np.array_equal(first, again)
        assert not np.array_equal(first, later) and not np.array_equal(first, other)


@pytest.mark.parametrize("size", [1, 3, 4, 12])
def test_steps_are_taken_in_order_with_their_own_draws(size):
    def step(carry, inputs):
        time, drawn = inputs
        return carry * 2 + time + 10 * drawn, None

    def draw(start):
        return (start + jnp.arange(size)) ** 2

    expected = 1.0
    for time in range(5, 17):
        expected = expected * 2 + time + 10 * time**2
    assert float(scan_steps(step, 1.0, draw, 5, (12, size))) == expected


def test_a_piece_divides_the_block():
    for length in (1, 7, 64, 97, 100, 500):
        size = piece_length(length)
        assert length % size == 0 and size <= MOST_AT_ONCE
    np.testing.assert_array_equal([largest_divisor(6, 3), largest_divisor(3, 2), largest_divisor(30, 15)], [3, 1, 15])
