"""Three walks on a grid: towards a corner, through four rooms, and over a frozen lake.

Actions are 0 up, 1 right, 2 down, 3 left. A step into a wall or over the edge stays where it is.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float

from gradientdice.base.arrays import require_memory
from gradientdice.base.errors import InputError, require_count, require_number
from gradientdice.mdp.finite import TabularMDP, require_mdp
from gradientdice.mdp.planning import mixed_with_uniform, optimal_q, softmax_policy

MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))

FOUR_ROOMS = (
    ".....#.....",
    ".....#.....",
    "...........",
    ".....#.....",
    ".....#.....",
    "#.####.....",
    ".....###.##",
    ".....#.....",
    ".....#.....",
    "...........",
    ".....#.....",
)
# The hallway between the two rooms on the right.
FOUR_ROOMS_GOAL = (6, 8)

LAKES = {
    4: ("S...", ".O.O", "...O", "O..G"),
    8: ("S.......", "........", "...O....", ".....O..", "...O....", ".OO...O.", ".O..O.O.", "...O...G"),
}

Policies = tuple[Float[np.ndarray, "S 4"], Float[np.ndarray, "S 4"]]


def grid_walk(side: int = 10, slip: float = 0.1) -> TabularMDP:
    """A walk on side × side squares that is paid for its closeness to the last corner, for ever.

    state = row · side + column. With probability `slip` a step goes in a direction drawn from all four. The reward is
    exp(−2 · distance / side), the distance from the corner in steps after the move; the first state is uniform.

    References:
        Nachum, Chow, Dai and Li 2019, DualDICE, whose walk does not slip.
    """
    side, slip = require_count("side", side, low=2), require_number("slip", slip, low=0, high=1)
    require_memory("The transitions", side**2, 4, side**2, remedy="Take a shorter side.")
    cells = {(row, column): row * side + column for row in range(side) for column in range(side)}
    moves = _moves(cells)
    transition = (1 - slip) * moves + slip * moves.mean(axis=1, keepdims=True)
    row, column = np.divmod(np.arange(side**2), side)
    closeness = np.exp(-2 * (2 * (side - 1) - row - column) / side)
    return TabularMDP(transition, transition @ closeness, np.full(side**2, 1 / side**2))


def grid_walk_policies(mdp: TabularMDP) -> Policies:
    """The target walks right or down, whichever is open, nine times in ten; the behaviour five times in ten."""
    require_mdp(mdp)
    side = round(mdp.num_states**0.5)
    if side**2 != mdp.num_states:
        raise InputError(f"mdp must be a grid_walk, which has side² states, not {mdp.num_states}.")
    row, column = np.divmod(np.arange(mdp.num_states), side)
    useful = np.zeros((mdp.num_states, 4))
    # At the corner itself either step stays.
    useful[:, 1] = (column < side - 1) | (row == side - 1)
    useful[:, 2] = (row < side - 1) | (column == side - 1)
    towards = useful / useful.sum(axis=1, keepdims=True)
    return mixed_with_uniform(towards, 0.9), mixed_with_uniform(towards, 0.5)


def four_rooms() -> TabularMDP:
    """Four rooms joined by four hallways, 104 squares in an 11 × 11 plan; the goal is the right-hand hallway.

    The states are the free squares in reading order. A step goes where it is meant to with probability 2/3, else in
    one of the three other directions. A step into the goal pays 1; from the goal the walk starts anew at any other
    square.

    References:
        Sutton, Precup and Singh 1999, Between MDPs and semi-MDPs. Their episodes end at the goal.
    """
    cells = _cells(FOUR_ROOMS, free=".")
    moves = _moves(cells)
    transition = (2 / 3 - 1 / 9) * moves + 4 / 9 * moves.mean(axis=1, keepdims=True)
    goal = cells[FOUR_ROOMS_GOAL]
    initial = np.full(len(cells), 1 / (len(cells) - 1))
    initial[goal] = 0
    reward = transition[:, :, goal].copy()
    transition[goal], reward[goal] = initial, 0
    return TabularMDP(transition, reward, initial)


def four_rooms_policies(mdp: TabularMDP) -> Policies:
    """The target is the optimum at discount 0.95, softened; the behaviour takes a random step half of the time."""
    target = softmax_policy(optimal_q(mdp, 0.95), 0.03)
    return target, mixed_with_uniform(target, 0.5)


def frozen_lake(size: Literal[4, 8] = 8) -> TabularMDP:
    """A slippery lake with holes: over the ice to the goal, in OpenAI Gym's 4 × 4 or 8 × 8 map.

    The states are the squares of ice in reading order, then one state for the end: `terminal` is num_states − 1. A
    step goes where it is meant to or to either side of that, with probability 1/3 each. Reaching the goal pays 1 and
    ends the episode; a hole ends it too. Episodes start in the first corner.

    References:
        Brockman et al. 2016, OpenAI Gym, FrozenLake-v0.
    """
    if require_count("size", size) not in LAKES:
        raise InputError(f"size must be 4 or 8, not {size!r:.60}.")
    lake = LAKES[size]
    ice = _cells(lake, free="S.")
    end, goal = len(ice), len(ice) + 1
    # Every hole is the end. The goal is kept apart until it is paid, then it is the end too.
    numbers = {(row, column): end for row in range(size) for column in range(size)} | ice
    numbers[size - 1, size - 1] = goal
    moves = _moves(numbers)
    slipping = (moves + np.roll(moves, 1, axis=1) + np.roll(moves, -1, axis=1)) / 3
    reward = slipping[:goal, :, goal].copy()
    transition = slipping[:goal, :, :goal].copy()
    transition[:, :, end] += reward
    transition[end], reward[end] = np.eye(goal)[end], 0
    return TabularMDP(transition, reward, np.eye(goal)[0])


def frozen_lake_policies(mdp: TabularMDP) -> Policies:
    """The target is the optimum at discount 0.99, softened; the behaviour takes a random step a third of the time."""
    target = softmax_policy(optimal_q(mdp, 0.99), 0.005)
    return target, mixed_with_uniform(target, 2 / 3)


def _cells(plan: tuple[str, ...], free: str) -> dict[tuple[int, int], int]:
    """The squares of a plan that carry one of the given marks, numbered in reading order."""
    places = [(row, column) for row, line in enumerate(plan) for column, mark in enumerate(line) if mark in free]
    return {place: number for number, place in enumerate(places)}


def _moves(cells: dict[tuple[int, int], int]) -> Float[np.ndarray, "S 4 S"]:
    """Where each action leads from each numbered square without a slip."""
    states = max(cells.values()) + 1
    moves = np.zeros((states, 4, states))
    for (row, column), state in cells.items():
        for action, (down, right) in enumerate(MOVES):
            moves[state, action, cells.get((row + down, column + right), state)] = 1
    return moves
