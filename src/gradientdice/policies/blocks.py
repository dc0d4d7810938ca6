"""A policy is asked at many states in blocks: what its layers hold meanwhile does not grow with the log."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gradientdice.base.errors import InputError

# A layer of 400 units holds 100 MiB at so many states, in double precision. Each block is one more call.
ROWS = 1 << 15


def asked_in_blocks(ask: Callable[[np.ndarray], np.ndarray], states: np.ndarray) -> np.ndarray:
    """What a policy gives at all states, one row per state; it is asked at least once, if only at none."""
    answers = [ask(states[begin : begin + ROWS]) for begin in range(0, max(1, len(states)), ROWS)]
    first = answers[0]
    for answer in answers:
        if answer.shape[1:] != first.shape[1:]:
            raise InputError(f"The policy returned shape {first.shape} for some states and {answer.shape} for others.")
    return first if len(answers) == 1 else np.concatenate(answers)
