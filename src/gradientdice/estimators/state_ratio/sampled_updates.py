"""Rows drawn one by one from a log of states, for the estimators' original stochastic updates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import InputError, require_count, require_number
from gradientdice.dice.closed_form import whitening
from gradientdice.dice.solution import Solution, Status
from gradientdice.estimators.state_ratio.state_flow import StateFlow
from gradientdice.functions.rows import LearnerRows, plain
from gradientdice.problem.design import whole_design

STATIONARY = (
    "the stochastic update takes states and next states to be distributed alike, as in a long run of the behaviour"
)

# So many rows' features are made dense at a time; the iterates are checked once for each.
BLOCK = 1024


class Draw(NamedTuple):
    """One transition: x(s), x(s'), β."""

    features: Float[np.ndarray, " K"]
    following: Float[np.ndarray, " K"]
    importance: float


Update = Callable[[np.ndarray, Draw], np.ndarray]


def check_options(solver: str, steps: int, learning_rate: float, rank_tolerance: float | None) -> None:
    """Errors for the options that exact and stochastic solvers of a state ratio have."""
    if not isinstance(solver, str) or solver not in ("exact", "stochastic"):
        raise InputError(f'solver must be "exact" or "stochastic", not {solver!r:.60}.')
    require_count("steps", steps)
    require_number("learning_rate", learning_rate, low=0, open_low=True)
    if rank_tolerance is not None:
        require_number("rank_tolerance", rank_tolerance, low=0, high=1)


def constant_ratio(flow: StateFlow, rank_tolerance: float | None) -> Float[np.ndarray, " K"]:
    """The parameters of the function nearest to c = 1, from which the updates begin."""
    basis = whitening(flow.gram, flow.tolerance(rank_tolerance))
    return basis @ (basis.T @ flow.mean)


def sampled_solution(params: np.ndarray, status: Status, steps: int) -> Solution:
    """The outcome of the updates."""
    return Solution(params, np.zeros(0), 0.0, status, {"steps": steps})


def iterate(flow: StateFlow, first: np.ndarray, update: Update, steps: int, seed: int) -> tuple[np.ndarray, Status]:
    """Iterates params ← update(params, draw), and the mean over the second half of the iterates.

    Args:
        flow: the log.
        first: where to begin.
        update: one step.
        steps: how many.
        seed: of the draws.

    Returns:
        The mean, and DIVERGED with the last finite iterate where one is no longer finite.
    """
    params, total, count = first, np.zeros_like(first), 0
    with np.errstate(over="ignore", invalid="ignore"):
        for block in _draws(flow, steps, np.random.default_rng(seed)):
            before = params
            for draw in block:
                params = update(params, draw)
                count += 1
                if 2 * count > steps:
                    total = total + params
            if not np.isfinite(total).all() or not np.isfinite(params).all():
                return before, Status.DIVERGED
    return total / (count - steps // 2), Status.OK


def _draws(flow: StateFlow, steps: int, rng: np.random.Generator) -> Iterator[list[Draw]]:
    """Rows by weight, in blocks: the absorbing state's loop among them below discount 1, restarts drawn at 1."""
    log = flow.log
    design = whole_design(log.data, log.policy, log.functions, rng)
    importance, weights = flow.importance, design.weights
    if flow.restarts:
        weights = weights[:-1]
    elif design.absorbing:
        importance = np.append(importance, 1.0)
    chance = weights / weights.sum()
    width = design.width - flow.restarts
    for begin in range(0, steps, BLOCK):
        rows = rng.choice(len(chance), size=min(BLOCK, steps - begin), p=chance)
        current, following = (
            _matrix(plain(part).take(rows), design.width) for part in (design.current, design.following)
        )
        if flow.restarts:
            ended = np.flatnonzero(design.ended[rows])
            assert design.initial is not None and design.initial_weights is not None
            share = design.initial_weights / design.initial_weights.sum()
            starts = rng.choice(len(share), size=len(ended), p=share)
            following[ended] = _matrix(plain(design.initial).take(starts), design.width)
        yield [
            Draw(*draw)
            for draw in zip(current[:, :width], following[:, :width], importance[rows].tolist(), strict=True)
        ]


def _matrix(rows: LearnerRows, width: int) -> np.ndarray:
    matrix = rows.matrix(width)
    return np.array(matrix) if isinstance(matrix, np.ndarray) else matrix.toarray()
