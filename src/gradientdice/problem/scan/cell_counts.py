"""Counts of a table's cells, with the rewards that they pay.

Of each cell the first few different rewards are counted one by one: where there are no more, as in most tables, the
counts are the log, and intervals need no second look at it.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from gradientdice.log.scanning.passes import Sums
from gradientdice.log.transitions import Transitions
from gradientdice.problem.scan.cells import CellCodes, CellPlaces

# Different rewards of a cell that are counted one by one.
SLOTS = 8
# New rewards are looked for among so many rows: a few different ones come early.
MOST_LOOKED_AT = 1000
# Room for so many cells to begin with.
FEWEST_CELLS = 1024
KEYS = ("codes", "cell_rows", "cell_weight", "cell_reward", "slot_reward", "slot_rows")


class CellCounter:
    """The cells of some rows, counted as they come.

    As long as all rewards are among a few, a slot is the same reward for every cell, which is faster; from the first
    other reward on each cell has slots of its own.
    """

    def __init__(self, codes: CellCodes) -> None:
        self._codes, self._places = codes, CellPlaces(codes)
        # What has no slot, and sums of weights.
        self._rows, self._weight, self._reward = np.zeros((3, FEWEST_CELLS))
        # A row for each slot that is used, so that the counts of a frequent reward lie together.
        self._slot_rows = np.zeros((0, FEWEST_CELLS), dtype=np.int64)
        self._slot_reward: np.ndarray | None = None  # of each cell, once they differ from cell to cell
        self._common = np.zeros(0)
        self._weighted = False

    def add(self, data: Transitions) -> None:
        """Adds rows."""
        cell, rewards = self._places.of(self._codes.of(data)), data.rewards
        self._make_room(len(self._places.codes))
        self._weighted = data.weights is not None
        if data.weights is not None:
            np.add.at(self._weight, cell, data.weights)
            np.add.at(self._reward, cell, data.weights * rewards)
            counted = data.weights > 0
            cell, rewards = cell[counted], rewards[counted]
        if self._into_common_slots(cell, rewards):
            return
        cell, rewards = self._into_own_slots(cell, rewards)
        # What the slots have no room for; the slots' own rows are added at the end.
        np.add.at(self._rows, cell, 1.0)
        if data.weights is None:
            np.add.at(self._weight, cell, 1.0)
            np.add.at(self._reward, cell, rewards)

    def sums(self) -> Sums:
        """The counts, one row per cell in the order of their codes: most parts of a log then have the same."""
        order = np.argsort(self._places.codes)
        slot_rows, slot_reward = (part.take(order, axis=1) for part in (self._slot_rows, self._rewards_of_slots()))
        in_slots = slot_rows.sum(axis=0).astype(np.float64)
        rows, weight, reward = (part[order] for part in (self._rows, self._weight, self._reward))
        if not self._weighted:
            weight += in_slots
            reward += np.where(slot_rows > 0, slot_reward * slot_rows, 0.0).sum(axis=0)
        rows += in_slots
        slots = np.ascontiguousarray(slot_reward.T), slot_rows.T.astype(np.float64, order="C")
        return dict(zip(KEYS, (self._places.codes[order], rows, weight, reward, *slots), strict=True))

    def _into_common_slots(self, cell: np.ndarray, rewards: np.ndarray) -> bool:
        """Counts the rows if all rewards are among the few; whether they are."""
        if self._slot_reward is not None:
            return False
        slot = _slots(self._common, rewards)
        if slot is None:
            few = np.unique(np.concatenate([self._common, rewards[:MOST_LOOKED_AT]]))
            wider = np.append(self._common, few[~np.isin(few, self._common)])
            slot = _slots(wider, rewards) if len(wider) <= SLOTS else None
            if slot is None:
                self._give_own_slots()
                return False
            self._widen(len(wider))
            self._common = wider
        place = np.multiply(slot, self._slot_rows.shape[1], dtype=np.int64)
        place += cell
        np.add.at(self._slot_rows.reshape(-1), place, 1)
        return True

    def _widen(self, slots: int) -> None:
        """Makes room for so many slots."""
        self._slot_rows = np.pad(self._slot_rows, ((0, slots - len(self._slot_rows)), (0, 0)))

    def _give_own_slots(self) -> None:
        """From here on each cell has slots of its own."""
        self._widen(SLOTS)
        self._slot_reward = self._rewards_of_slots()

    def _rewards_of_slots(self) -> Float[np.ndarray, "slots C"]:
        """The reward of each cell's slots; NaN where a slot is empty."""
        if self._slot_reward is not None:
            return self._slot_reward
        rewards = np.full(self._slot_rows.shape, np.nan)
        rewards[: len(self._common)] = self._common[:, None]
        rewards[self._slot_rows == 0] = np.nan
        return rewards

    def _into_own_slots(self, cell: np.ndarray, rewards: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Counts the rows whose reward has a slot; returns the others."""
        assert self._slot_reward is not None
        for held, rows in zip(self._slot_reward, self._slot_rows, strict=True):
            if not len(cell):
                break
            match = held[cell] == rewards
            other = np.flatnonzero(~match)
            empty = other[np.isnan(held[cell[other]])]
            if len(empty):
                new, first = np.unique(cell[empty], return_index=True)
                held[new] = rewards[empty[first]]
                match = held[cell] == rewards
                other = np.flatnonzero(~match)
            np.add.at(rows, cell[match] if len(other) else cell, 1)
            cell, rewards = cell[other], rewards[other]
        return cell, rewards

    def _make_room(self, count: int) -> None:
        """Makes room for so many cells."""
        if count <= len(self._rows):
            return
        more = (0, max(count, 2 * len(self._rows)) - len(self._rows))
        self._rows, self._weight, self._reward = (
            np.pad(part, more) for part in (self._rows, self._weight, self._reward)
        )
        self._slot_rows = np.pad(self._slot_rows, ((0, 0), more))
        if self._slot_reward is not None:
            self._slot_reward = np.pad(self._slot_reward, ((0, 0), more), constant_values=np.nan)


def _slots(common: Float[np.ndarray, " k"], rewards: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"] | None:
    """The number of each reward among these, which differ; None if one is not there."""
    slot, known = np.zeros(len(rewards), dtype=np.int8), 0
    for number, value in enumerate(common):
        here = rewards == value
        known += np.count_nonzero(here)
        if number:
            slot += here.view(np.int8) * np.int8(number)
        if known == len(rewards):
            return slot
    return None


def merged_cells(left: Sums, right: Sums) -> Sums:
    """The counts of two stretches of a log."""
    codes, at = left["codes"], (slice(None), slice(None))
    if not np.array_equal(codes, right["codes"]):
        # A stable sort merges two runs that are sorted in one pass.
        both = np.sort(np.concatenate([left["codes"], right["codes"]]), kind="stable")
        codes = both[np.append(True, both[1:] != both[:-1])]
        at = tuple(np.searchsorted(codes, side["codes"]) for side in (left, right))
    merged: Sums = {"codes": codes}
    for name in KEYS[1:4]:
        merged[name] = np.zeros(len(codes))
        for place, side in zip(at, (left, right), strict=True):
            merged[name][place] += side[name]
    shape = len(codes), max(side["slot_rows"].shape[1] for side in (left, right))
    slots = (_spread_out(side, place, shape) for place, side in zip(at, (left, right), strict=True))
    return {**merged, **dict(zip(KEYS[4:], _merged_slots(*slots), strict=True))}


Slots = tuple[Float[np.ndarray, "C slots"], Float[np.ndarray, "C slots"]]  # rewards, rows


def _spread_out(sums: Sums, at: np.ndarray | slice, shape: tuple[int, int]) -> Slots:
    """Rewards and rows of the slots, at these places of so many cells and slots."""
    rewards, rows = np.full(shape, np.nan), np.zeros(shape)
    used = slice(0, sums["slot_rows"].shape[1])
    rewards[at, used], rows[at, used] = sums["slot_reward"], sums["slot_rows"]
    return rewards, rows


def _merged_slots(left: Slots, right: Slots) -> Slots:
    """The slots of the same cells, put together."""
    (left_reward, left_rows), (right_reward, right_rows) = left, right
    # A cell most often has the same rewards in the same slots on both sides, or has rows on one side only.
    new = np.logical_not(left_rows.any(axis=1))
    plain = new | ((right_rows == 0) | (left_reward == right_reward)).all(axis=1)
    reward, rows = np.where(new[:, None], right_reward, left_reward), left_rows + right_rows
    if plain.all():
        return reward, rows
    other = np.flatnonzero(~plain)
    found = _sorted_slots(*((side[0][other], side[1][other]) for side in (left, right)))
    wider = max(0, found[0].shape[1] - reward.shape[1])
    reward = np.pad(reward, ((0, 0), (0, wider)), constant_values=np.nan)
    rows = np.pad(rows, ((0, 0), (0, wider)))
    reward[other], rows[other] = np.nan, 0.0
    reward[other, : found[0].shape[1]], rows[other, : found[0].shape[1]] = found
    return reward, rows


def _sorted_slots(*sides: Slots) -> Slots:
    """The slots of the same cells on both sides put together; of more rewards than `SLOTS` the most frequent."""
    count = len(sides[0][0])
    reward, number = (np.concatenate(part, axis=1) for part in zip(*sides, strict=True))
    cell, slot = np.nonzero(number > 0)
    reward, number = reward[cell, slot], number[cell, slot]
    order = np.lexsort((reward, cell))
    cell, reward, number = cell[order], reward[order], number[order]
    first = np.flatnonzero(np.append(True, (cell[1:] != cell[:-1]) | (reward[1:] != reward[:-1])))
    cell, reward, number = cell[first], reward[first], np.add.reduceat(number, first)
    order = np.lexsort((-number, cell))
    cell, reward, number = cell[order], reward[order], number[order]
    slot = np.arange(len(cell)) - np.searchsorted(cell, np.arange(count))[cell]
    kept = slot < SLOTS
    shape = count, min(SLOTS, int(slot.max()) + 1)
    slot_reward, slot_rows = np.full(shape, np.nan), np.zeros(shape)
    slot_reward[cell[kept], slot[kept]], slot_rows[cell[kept], slot[kept]] = reward[kept], number[kept]
    return slot_reward, slot_rows


def usual_rows(pair: Int[np.ndarray, " C"], sums: Sums) -> tuple[Float[np.ndarray, " P"], Float[np.ndarray, " P"]]:
    """How many rows each pair has, and how many of them have its most frequent outcome."""
    rows, usual = np.bincount(pair, sums["cell_rows"]), np.zeros(int(pair.max()) + 1)
    np.maximum.at(usual, pair, sums["slot_rows"].max(axis=1))
    return rows, usual
