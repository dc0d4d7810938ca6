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

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Int, Num, UInt64

if TYPE_CHECKING:
    from gradientdice.log.transitions import Transitions

# Of the values that come several times, so many may come with different rows: a start state that all episodes share.
MOST_RECURRING = 0.1
# Of the further rows in a cell (state, action, next state), so many must have a reward of their own for rewards to be
# noise: rows copied up to twenty times do, a few possible rewards in a cell with many rows do not.
LEAST_NOISE = 0.05
# So many columns of the states, evenly spaced, tell most rows apart that are not copies.
FEW_COLUMNS = 4
# Numbers that are looked at together: with what is computed from them they fit into a processor's cache.
BLOCK_NUMBERS = 1 << 16

Rows = Int[np.ndarray, " m"]


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
    group, is_copy = np.arange(len(data)), np.zeros(len(data), dtype=bool)
    chosen = np.flatnonzero(counted)
    if not (_any_fraction(data.states) or _any_fraction(data.rewards)) or _all_differ(data, chosen):
        return Copies(group, is_copy)
    fractions = [_has_fraction(part, chosen) for part in (data.states, data.rewards)]
    parts = (data.states, data.rewards, data.actions, data.next_states)
    state, reward, action, following = (_hashed(part, chosen) for part in parts)
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


def _all_differ(data: Transitions, chosen: Rows) -> bool:
    """Whether no two of these rows have the same state and reward.

    The rewards alone or a few columns tell most rows apart; the rest of a wide state is read where they do not.
    """
    states = data.states.reshape(len(data), -1)
    width = states.shape[1]
    few = np.linspace(0, width - 1, min(FEW_COLUMNS, width)).astype(np.int64)
    for columns in (slice(0), few, slice(None)):
        key = mixed(_hashed(data.rewards, chosen)) + _hashed(states[:, columns], chosen)
        _, index, count = np.unique(key, return_inverse=True, return_counts=True)
        chosen = chosen[count[index] > 1]
        if not len(chosen):
            return True
    return False


def _any_fraction(values: Num[np.ndarray, "n ..."]) -> bool:
    """Whether there is a number with a fraction: the first rows mostly tell."""
    return any((block != np.floor(block)).any() for _, block in _blocks(values, np.arange(len(values))))


def _has_fraction(values: Num[np.ndarray, "n ..."], chosen: Rows) -> Bool[np.ndarray, " m"]:
    found = np.zeros(len(chosen), dtype=bool)
    for rows, block in _blocks(values, chosen):
        found[rows] = (block != np.floor(block)).any(axis=1)
    return found


def _hashed(values: Num[np.ndarray, "n ..."], chosen: Rows) -> UInt64[np.ndarray, " m"]:
    """A 64-bit hash of each row's numbers: of a million rows two that differ agree with a chance of 3 in 10⁸."""
    total = np.zeros(len(chosen), dtype=np.uint64)
    for rows, block in _blocks(values, chosen):
        # −0 and 0 are one number.
        for column in np.ascontiguousarray(block.T, dtype=np.float64) + 0.0:
            total[rows] = mixed(total[rows] + column.view(np.uint64))
    return total


def _blocks(values: Num[np.ndarray, "n ..."], chosen: Rows) -> Iterator[tuple[slice, Num[np.ndarray, "m width"]]]:
    """The numbers of the chosen rows, some rows at a time, and which of these they are."""
    flat = values.reshape(len(values), -1)
    size = max(1, BLOCK_NUMBERS // max(1, flat.shape[1]))
    for start in range(0, len(chosen), size):
        rows = slice(start, start + size)
        yield rows, flat[chosen[rows]]


def mixed(values: UInt64[np.ndarray, " n"]) -> UInt64[np.ndarray, " n"]:
    """SplitMix64's finaliser: numbers that are near each other become unrelated ones (Steele et al., OOPSLA 2014)."""
    mix = values + np.uint64(0x9E3779B97F4A7C15)
    mix = (mix ^ (mix >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mix = (mix ^ (mix >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mix ^ (mix >> np.uint64(31))
