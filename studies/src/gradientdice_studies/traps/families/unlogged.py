"""Tables of which the log lacks something that the policy does.

In some states the policy takes an action that the behaviour hardly takes, or never: most logs do not have it there.
What a random table's unlogged action does is drawn like that of the logged ones. On the grids without noise every row
of a pair agrees, so that the rows alone give an interval without width.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from gradientdice.mdp import TabularMDP
from gradientdice.policies import TabularPolicy
from gradientdice_studies.coverage.problems import Problem
from gradientdice_studies.traps.family import Case, Family, Half

TRAP = "steps that were never logged"
# To the right, down, to the left and up.
MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))


def families() -> list[Family]:
    """Random tables and grids, at discounts of 0.9, 0.99 and 1."""
    few, rare, never = dict(rare=0.02, logged=0.01), dict(rare=0.003, logged=0.003), dict(logged=0.0, noise=0.0)
    return [
        _family("random 30×3, rare actions", lambda: _random(4, 30, 3, **rare), 2_000, 0.99, "develop"),
        _family("random 8×3, no noise", lambda: _random(5, 8, 3, rare=0.002, **never), 5_000, 0.99, "develop"),
        _family("random 20×4, 1% unlogged", lambda: _random(3, 20, 4, **few), 1_500, 1.0, "develop"),
        _family("grid 5×5, 2% unlogged", lambda: _grid(5, 0.02, 0.003), 2_000, 1.0, "develop"),
        _family("grid 4×4, few unlogged", lambda: _grid(4, 0.0004, 0.0002), 4_000, 1.0, "develop"),
        _family("grid 4×4, few unlogged", lambda: _grid(4, 0.0004, 0.0002), 4_000, 0.9, "develop"),
        _family("grid 4×4, a slip in 500", lambda: _grid(4, 0.1, 0.1, slip=0.002), 1_500, 1.0, "develop"),
        _family("grid 4×4, a slip in 100", lambda: _grid(4, 0.1, 0.1, slip=0.01), 1_500, 1.0, "develop"),
        _family("random 40×2, rare actions", lambda: _random(11, 40, 2, **rare), 3_000, 0.95, "report"),
        _family("random 10×4, no noise", lambda: _random(12, 10, 4, rare=0.001, **never), 4_000, 1.0, "report"),
        _family("random 15×3, 1% unlogged", lambda: _random(13, 15, 3, **few), 1_200, 0.9, "report"),
        _family("grid 3×3, few unlogged", lambda: _grid(3, 0.0003, 0.0003), 2_500, 1.0, "report"),
        _family("grid 6×6, 1% unlogged", lambda: _grid(6, 0.01, 0.002), 3_000, 0.99, "report"),
        _family("grid 5×5, a slip in 250", lambda: _grid(5, 0.15, 0.15, slip=0.004), 2_500, 1.0, "report"),
    ]


def _family(name: str, make: Callable[[], Problem], rows: int, discount: float, half: Half) -> Family:
    problem = cache(make)

    def log(rng: np.random.Generator) -> Case:
        return Case(problem().trajectories(rows, rng), TabularPolicy(problem().target))

    return Family(
        name=f"{name}, γ = {discount:g}",
        trap=TRAP,
        states="table",
        half=half,
        discount=discount,
        truth=lambda: problem().truth(discount),
        log=log,
    )


def _random(seed: int, states: int, actions: int, *, rare: float, logged: float, noise: float = 0.5) -> Problem:
    """A random table; in a third of its states one action has probability `rare`, and `logged` under the behaviour."""
    rng = np.random.default_rng(seed)
    mdp = TabularMDP(
        rng.dirichlet(np.full(states, 0.2), size=(states, actions)),
        rng.normal(size=(states, actions)),
        rng.dirichlet(np.ones(states)),
    )
    target = rng.dirichlet(np.ones(actions), size=states)
    behavior = 0.5 * target + 0.5 / actions
    for state in np.flatnonzero(rng.random(states) < 1 / 3):
        action = rng.integers(actions)
        for policy, probability in ((target, rare), (behavior, logged)):
            others = np.arange(actions) != action
            policy[state, others] *= (1 - probability) / policy[state, others].sum()
            policy[state, action] = probability
    return Problem("random", mdp, states, target, behavior, noise)


def _grid(side: int, back: float, logged: float, slip: float = 0.0) -> Problem:
    """A grid without noise: a step towards the last corner from beside it pays 1, and from there it goes to the first.

    The policy goes on to the right or down, and to the left or up with probability `back` each; `logged` under the
    behaviour. With probability `slip` a step leads nowhere, so rarely that a log has few such rows, or none.
    """
    states = side * side
    transition, reward = np.zeros((states, 4, states)), np.zeros((states, 4))
    for state in range(states - 1):
        row, column = divmod(state, side)
        for action, (down, right) in enumerate(MOVES):
            to = min(max(row + down, 0), side - 1) * side + min(max(column + right, 0), side - 1)
            transition[state, action, to] += 1 - slip
            transition[state, action, state] += slip
            reward[state, action] = to == states - 1
    transition[states - 1, :, 0] = 1
    target, behavior = (np.tile([0.5 - p, 0.5 - p, p, p], (states, 1)) for p in (back, logged))
    mdp = TabularMDP(transition, reward, np.full(states, 1 / states))
    return Problem("grid", mdp, states, target, behavior, noise=0.0)
