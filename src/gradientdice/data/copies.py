"""Rows that are there several times: exact copies, told from rows that are alike because few values are possible.

In a table with whole-number rewards equal rows say nothing: the same happened again. A value with a fraction that is
drawn from a continuous distribution never comes twice; two rows that share one are copies, as a replay buffer makes
them that is sampled with replacement, or a file that is read twice. But not every fraction is drawn: a reward may be
−0.2 at every step, and episodes may all start in 0.5. So a value is evidence of copies only where

- no other row has it: the same state with another action or outcome shows that the state comes again by itself;
- such values are the rule in the log, since a few rows that repeat something may be equal by chance;
- for rewards, rows with the same state, action and next state have different ones: else they follow from these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Int, Num, UInt64

if TYPE_CHECKING:
    from gradientdice.data.transitions import Transitions

# Of the values that come several times, so many may come with different rows: a start state that all episodes share.
MOST_RECURRING = 0.1
# Of the further rows in a cell (state, action, next state), so many must have a reward of their own for rewards to be
# noise: rows copied up to twenty times do, a few possible rewards in a cell with many rows do not.
LEAST_NOISE = 0.05


@dataclass(frozen=True, eq=False)
class Copies:
    """Which rows are equal.

    Attributes:
        group: (n,) the first row that counts and equals each row; itself for a row that does not count.
        is_copy: (n,) whether there are others equal to it that can only be copies of it.
    """

    group: Int[np.ndarray, " n"]
    is_copy: Bool[np.ndarray, " n"]


def row_copies(data: Transitions, counted: Bool[np.ndarray, " n"]) -> Copies:
    """The copies among the rows of a log that count."""
    chosen = np.flatnonzero(counted)
    group, is_copy = np.arange(len(data)), np.zeros(len(data), dtype=bool)
    fractions = [_has_fraction(part[chosen]) for part in (data.states, data.rewards)]
    if not any(part.any() for part in fractions):
        return Copies(group, is_copy)
    state, reward = _hashed(data.states[chosen]), _hashed(data.rewards[chosen])
    ordered = np.sort(mixed(state) + reward)
    if (ordered[1:] != ordered[:-1]).all():
        return Copies(group, is_copy)
    action, following = _hashed(data.actions[chosen]), _hashed(data.next_states[chosen])
    # What follows an end is not used and may be anything.
    cell = mixed(mixed(mixed(state) + action) + np.where(data.ended[chosen], np.uint64(1), following))
    row = mixed(cell + reward)
    _, first, same = np.unique(row, return_index=True, return_inverse=True)
    several = np.bincount(same)[same] > 1
    group[chosen] = chosen[first[same]]
    if several.any():
        certain = _is_own(state, row, fractions[0])
        if _rewards_are_noise(cell, row):
            certain |= _is_own(reward, row, fractions[1])
        is_copy[chosen] = several & certain
    return Copies(group, is_copy)


def _is_own(value: np.ndarray, row: np.ndarray, fraction: np.ndarray) -> np.ndarray:
    """Whether each row's value has a fraction and is in no row that differs; nowhere if such values often are."""
    if not fraction.any():
        return fraction
    _, index = np.unique(value, return_inverse=True)
    count = np.bincount(index)
    _, of_row = np.unique(row, return_index=True)
    different = np.bincount(index[of_row], minlength=len(count))
    recurring = (count > 1) & (np.bincount(index, fraction) > 0)
    shared = recurring & (different > 1)
    if shared.sum() > MOST_RECURRING * recurring.sum():
        return np.zeros(len(value), dtype=bool)
    return fraction & ~shared[index]


def _rewards_are_noise(cell: np.ndarray, row: np.ndarray) -> bool:
    """Whether rows of one cell differ in their rewards."""
    cells, rows = len(np.unique(cell)), len(np.unique(row))
    return rows - cells >= LEAST_NOISE * (len(row) - cells) and rows > cells


def _has_fraction(values: Num[np.ndarray, "n ..."]) -> Bool[np.ndarray, " n"]:
    if values.dtype.kind in "iu":
        return np.zeros(len(values), dtype=bool)
    return (values != np.floor(values)).reshape(len(values), -1).any(axis=1)


def _hashed(values: Num[np.ndarray, "n ..."]) -> UInt64[np.ndarray, " n"]:
    """A 64-bit hash of each row's numbers: of a million rows two that differ agree with a chance of 3 in 10⁸."""
    columns = values.reshape(len(values), -1).T
    total = np.zeros(len(values), dtype=np.uint64)
    for column in columns:
        # −0 and 0 are one number.
        total = mixed(total + (np.asarray(column, dtype=np.float64) + 0.0).view(np.uint64))
    return total


def mixed(values: UInt64[np.ndarray, " n"]) -> UInt64[np.ndarray, " n"]:
    """SplitMix64's finaliser: numbers that are near each other become unrelated ones (Steele et al., OOPSLA 2014)."""
    mix = values + np.uint64(0x9E3779B97F4A7C15)
    mix = (mix ^ (mix >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mix = (mix ^ (mix >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mix ^ (mix >> np.uint64(31))
