"""Which rows of a log are independent of each other: the one definition for folds and for intervals.

A unit is an episode where episodes are given, else a row. Rows that are exact copies of each other (`data/copies.py`)
carry what one of them does: without episodes they are one unit, and so are episodes that are copies row by row. What
counts 0 times belongs to no unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from gradientdice.log.copies import mixed, row_copies

if TYPE_CHECKING:
    from gradientdice.log.transitions import Transitions


@dataclass(frozen=True, eq=False)
class Units:
    """The independent units of a log, numbered 0, 1, … by the first row (or the lowest episode) of each.

    Attributes:
        rows: (n,) the unit of each row; −1 where it belongs to none.
        count: how many units there are.
        original: (n,) the first row that each row is an exact copy of; itself where it is none.
        distinct: (n,) the rows that count and are no copies.
    """

    rows: Int[np.ndarray, " n"]
    count: int
    original: Int[np.ndarray, " n"]
    distinct: Bool[np.ndarray, " n"]

    @property
    def copied(self) -> Bool[np.ndarray, " n"]:
        """Whether each row is an exact copy of an earlier one that counts."""
        return self.original != np.arange(len(self.original))

    def sums(self, amounts: Float[np.ndarray, " m"], rows: Int[np.ndarray, " m"] | None = None) -> np.ndarray:
        """(count,) the sum of some amounts over each unit; amounts are those of all rows, or of the rows given."""
        of = self.rows if rows is None else self.rows[rows]
        used = of >= 0
        return np.bincount(of[used], weights=amounts[used], minlength=self.count)


def independent_units(data: Transitions) -> Units:
    """The units of a log."""
    counted = data.row_weights > 0
    copies = row_copies(data, counted)
    original = np.where(copies.is_copy, copies.group, np.arange(len(data)))
    distinct = counted & (original == np.arange(len(data)))
    if data.episodes is None:
        return Units(*_numbered(original, counted), original, distinct)
    _, episode = np.unique(data.episodes, return_inverse=True)
    number = episode.max() + 1
    counted_episode = np.bincount(episode, counted, minlength=number) > 0
    unit = np.arange(number)
    if copies.is_copy.any():
        unit = _copied_episodes(episode, copies.group, copies.is_copy, number)
    numbers, count = _numbered(unit, counted_episode)
    return Units(numbers[episode], count, original, distinct)


def _copied_episodes(episode: np.ndarray, group: np.ndarray, is_copy: np.ndarray, number: int) -> np.ndarray:
    """(E,) the first episode that has the same rows in the same order, if some of them can only be copies."""
    order = np.argsort(episode, kind="stable")
    length = np.bincount(episode, minlength=number)
    step = np.arange(len(order)) - np.repeat(np.cumsum(length) - length, length)
    # A hash of the rows' groups and of their places: equal for copies, and for others with a chance of 2⁻⁶⁴.
    parts = mixed(mixed(group[order].astype(np.uint64)) + step.astype(np.uint64))
    signature = np.zeros(number, dtype=np.uint64)
    np.add.at(signature, episode[order], parts)
    signature = mixed(signature + length.astype(np.uint64))
    _, first, same = np.unique(signature, return_index=True, return_inverse=True)
    certain = np.bincount(episode, is_copy, minlength=number) > 0
    return np.where(certain, first[same], np.arange(number))


def _numbered(labels: np.ndarray, counted: np.ndarray) -> tuple[np.ndarray, int]:
    """Labels that are numbers of rows (or episodes) as 0, 1, … without gaps; −1 for what does not count."""
    present = np.zeros(len(labels), dtype=bool)
    present[labels[counted]] = True
    number = np.where(present, np.cumsum(present) - 1, -1)
    return np.where(counted, number[labels], -1), int(present.sum())
