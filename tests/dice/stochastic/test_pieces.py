"""Drawing for several steps at a time changes nothing but the time that it takes."""

import jax.numpy as jnp
import numpy as np
import pytest

from gradientdice.dice.stochastic.pieces import MOST_AT_ONCE, largest_divisor, piece_length, scan_steps


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
