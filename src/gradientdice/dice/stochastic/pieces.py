"""A scan over steps whose random numbers are drawn for several steps at a time.

Small draws inside a step cost as much as a tenth of its arithmetic; one large draw for many steps costs next to
nothing, but takes memory for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

# A draw for so many steps costs each of them little; its numbers still fit into a core's own cache.
MOST_AT_ONCE = 64


def piece_length(length: int) -> int:
    """How many of a block's steps to draw for at a time."""
    return largest_divisor(length, MOST_AT_ONCE)


def largest_divisor(total: int, most: int) -> int:
    """The largest divisor of a number that is at most so large."""
    return next(size for size in range(min(total, most), 0, -1) if total % size == 0)


def scan_steps(
    step: Callable[[Any, tuple[Any, Any]], tuple[Any, None]],
    carry: Any,
    draw: Callable[[Any], Any],
    first: Any,
    sizes: tuple[int, int],
) -> Any:
    """The carry after a block of steps.

    Args:
        step: from the carry and (the number of the step, what is drawn for it) to (the next carry, None).
        carry: before the first step.
        draw: from the number of a piece's first step to what its steps need, the first axis over steps.
        first: the number of the first step.
        sizes: how many steps there are, and how many of them a piece has.
    """
    length, size = sizes

    def piece(carry: Any, start: Any) -> tuple[Any, None]:
        return lax.scan(step, carry, (start + jnp.arange(size), draw(start)))[0], None

    if size == length:
        return piece(carry, first)[0]
    return lax.scan(piece, carry, first + size * jnp.arange(length // size))[0]
