"""Counts of a table's cells (state, action, next state or end), with the rewards that they pay.

Of each cell the first few different rewards are counted one by one: where there are no more, as in most tables, the
counts are the log, and intervals need no second look at it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from gradientdice.data.scan.passes import Sums
from gradientdice.data.transitions import Transitions
from gradientdice.functions import Tabular

# Different rewards of a cell that are counted one by one.
SLOTS = 8
# A list of places for this many codes takes 128 MiB; larger tables are searched in sorted codes.
LARGEST_LIST = 1 << 25
# New rewards are looked for among so many rows: a few different ones come early.
MOST_LOOKED_AT = 1000
KEYS = ("codes", "cell_rows", "cell_weight", "cell_reward", "slot_reward", "slot_rows")


@dataclass(frozen=True)
class CellCodes:
    """Cells as numbers: ((state · actions) + action) · (states + 1) + next state, which is `states` after an end."""

    table: Tabular

    def of(self, data: Transitions) -> Int[np.ndarray, " n"]:
        """The code of each row; an error for states or actions outside the table."""
        table, ended = self.table, data.ended
        states, actions, following = data.states, data.actions, data.next_states
        if not (
            _inside(states, table.num_states)
            and _inside(actions, table.num_actions)
            and _inside(following, table.num_states)
        ):
            # What follows an end is not used and may be anything.
            following = np.where(ended, states, following) if following.ndim == 1 else following
            for name, values in (("states", states), ("next_states", following)):
                table.check(name, values, table.num_states)
            table.check("actions", actions, table.num_actions)
        code = states.astype(np.int64)
        code *= table.num_actions
        code += actions
        code *= table.num_states + 1
        code += np.where(ended, table.num_states, following) if data.terminated is not None else following
        return code

    @property
    def count(self) -> int:
        """How many codes there are."""
        return self.table.num_features * (self.table.num_states + 1)

    def parts(
        self, code: Int[np.ndarray, " C"]
    ) -> tuple[Int[np.ndarray, " C"], Int[np.ndarray, " C"], Int[np.ndarray, " C"], Bool[np.ndarray, " C"]]:
        """State, action, next state and whether the episode ended, of each code; after an end the state itself."""
        pair, following = np.divmod(code, self.table.num_states + 1)
        state, action = np.divmod(pair, self.table.num_actions)
        ended = following == self.table.num_states
        return state, action, np.where(ended, state, following), ended


class CellPlaces:
    """The number of each code among those that came so far, in the order in which they first came."""

    def __init__(self, codes: CellCodes, known: Int[np.ndarray, " C"] | None = None) -> None:
        self.codes, self._kind = np.zeros(0, dtype=np.int64), codes
        self._list = np.full(codes.count, -1, dtype=np.int32) if codes.count <= LARGEST_LIST else None
        self._order = self.codes
        if known is not None:
            self._append(known)

    def __reduce__(self) -> tuple[type, tuple[CellCodes, np.ndarray]]:
        return CellPlaces, (self._kind, self.codes)  # the list is made anew where it is used

    def of(self, codes: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """The numbers of these codes; new ones get the next."""
        place = self.find(codes)
        unknown = np.flatnonzero(place < 0)
        if len(unknown):
            new, first = np.unique(codes[unknown], return_index=True)
            self._append(new[np.argsort(first)])
            place = np.array(place)
            place[unknown] = self.find(codes[unknown])
        return place

    def find(self, codes: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """The numbers of these codes; −1 for one that did not come yet."""
        if self._list is not None:
            return self._list[codes]
        if not len(self.codes):
            return np.full(len(codes), -1)
        at = np.minimum(np.searchsorted(self._sorted, codes), len(self.codes) - 1)
        return np.where(self._sorted[at] == codes, self._order[at], -1)

    def _append(self, new: np.ndarray) -> None:
        start = len(self.codes)
        self.codes = np.concatenate([self.codes, new])
        if self._list is not None:
            self._list[new] = np.arange(start, len(self.codes))
        else:
            self._order = np.argsort(self.codes, kind="stable")
            self._sorted = self.codes[self._order]


class CellCounter:
    """The cells of some rows, counted as they come.

    As long as all rewards are among a few, a slot is the same reward for every cell, which is faster; from the first
    other reward on each cell has slots of its own.
    """

    def __init__(self, codes: CellCodes) -> None:
        self._codes, self._places = codes, CellPlaces(codes)
        self._rows, self._weight, self._reward = (np.zeros(0) for _ in range(3))
        self._common: np.ndarray | None = np.zeros(0)
        self._slot_reward, self._slot_rows = np.zeros((0, SLOTS)), np.zeros((0, SLOTS))
        self._weighted = False

    def add(self, data: Transitions) -> None:
        """Adds rows."""
        cell, rewards = self._places.of(self._codes.of(data)), data.rewards
        self._grow(len(self._places.codes))
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
        """The counts, one row per cell in the order of their first rows."""
        self._make_own()
        count = len(self._places.codes)
        slot_reward, slot_rows = self._slot_reward[:count], self._slot_rows[:count]
        rows = self._rows[:count] + slot_rows.sum(axis=1)
        weight, reward = self._weight[:count], self._reward[:count]
        if not self._weighted:
            weight = weight + slot_rows.sum(axis=1)
            reward = reward + np.sum(np.where(slot_rows > 0, slot_reward, 0.0) * slot_rows, axis=1)
        return dict(zip(KEYS, (self._places.codes, rows, weight, reward, slot_reward, slot_rows), strict=True))

    def _into_common_slots(self, cell: np.ndarray, rewards: np.ndarray) -> bool:
        """Counts the rows if all rewards are among the few; whether they are."""
        if self._common is None:
            return False
        slot = _slots(self._common, rewards)
        if slot is None:
            few = np.unique(np.concatenate([self._common, rewards[:MOST_LOOKED_AT]]))
            new = few[~np.isin(few, self._common)]
            wider = np.append(self._common, new)
            slot = _slots(wider, rewards) if len(wider) <= SLOTS else None
            if slot is None:
                self._make_own()
                return False
            self._common = wider
        place = cell.astype(np.int64)
        place *= SLOTS
        place += slot
        np.add.at(self._slot_rows.reshape(-1), place, 1.0)
        return True

    def _make_own(self) -> None:
        """From here on each cell has slots of its own."""
        if self._common is not None:
            used = self._slot_rows[:, : len(self._common)] > 0
            self._slot_reward[:, : len(self._common)][used] = np.broadcast_to(self._common, used.shape)[used]
            self._common = None

    def _into_own_slots(self, cell: np.ndarray, rewards: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Counts the rows whose reward has a slot; returns the others."""
        for slot in range(SLOTS):
            if not len(cell):
                break
            held, rows = self._slot_reward[:, slot], self._slot_rows[:, slot]
            match = held[cell] == rewards
            other = np.flatnonzero(~match)
            empty = other[np.isnan(held[cell[other]])]
            if len(empty):
                new, first = np.unique(cell[empty], return_index=True)
                held[new] = rewards[empty[first]]
                match = held[cell] == rewards
                other = np.flatnonzero(~match)
            np.add.at(rows, cell[match] if len(other) else cell, 1.0)
            cell, rewards = cell[other], rewards[other]
        return cell, rewards

    def _grow(self, count: int) -> None:
        """Makes room for so many cells."""
        if count <= len(self._rows):
            return
        more = max(count, 2 * len(self._rows)) - len(self._rows)
        self._rows, self._weight, self._reward = (
            np.append(array, np.zeros(more)) for array in (self._rows, self._weight, self._reward)
        )
        self._slot_reward = np.vstack([self._slot_reward, np.full((more, SLOTS), np.nan)])
        self._slot_rows = np.vstack([self._slot_rows, np.zeros((more, SLOTS))])


def _slots(common: Float[np.ndarray, " k"], rewards: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"] | None:
    """The number of each reward among these; None if one is not there."""
    if not len(common):
        return None
    slot = np.zeros(len(rewards), dtype=np.int8)
    for number, value in enumerate(common[1:], start=1):
        slot += np.int8(number) * (rewards == value)
    return slot if (common[slot] == rewards).all() else None


def _inside(values: np.ndarray, count: int) -> bool:
    """Whether these are single whole numbers below `count`."""
    if values.ndim != 1 or values.dtype.kind not in "iu" or not len(values):
        return False
    return bool(values.min() >= 0 and values.max() < count)


def merged_cells(codes: CellCodes, left: Sums, right: Sums) -> Sums:
    """The counts of two stretches of a log."""
    places = CellPlaces(codes, left["codes"])
    at = places.of(right["codes"])
    count = len(places.codes)
    merged: Sums = {"codes": places.codes}
    for name in KEYS[1:4]:
        merged[name] = np.append(left[name], np.zeros(count - len(left[name])))
        merged[name][at] += right[name]
    slots = _merged_slots(count, (np.arange(len(left["codes"])), left), (at, right))
    return {**merged, **dict(zip(KEYS[4:], slots, strict=True))}


def _merged_slots(count: int, *sides: tuple[np.ndarray, Sums]) -> tuple[np.ndarray, np.ndarray]:
    """The slots of both; of more different rewards than there are slots the most frequent ones are kept."""
    cells, rewards, rows = [], [], []
    for at, sums in sides:
        used = sums["slot_rows"] > 0
        cells.append(np.broadcast_to(at[:, None], used.shape)[used])
        rewards.append(sums["slot_reward"][used])
        rows.append(sums["slot_rows"][used])
    cell, reward, number = (np.concatenate(part) for part in (cells, rewards, rows))
    order = np.lexsort((reward, cell))
    cell, reward, number = cell[order], reward[order], number[order]
    first = np.flatnonzero(np.append(True, (cell[1:] != cell[:-1]) | (reward[1:] != reward[:-1]))[: len(cell)])
    cell, reward = cell[first], reward[first]
    number = np.add.reduceat(number, first) if len(first) else number
    order = np.lexsort((-number, cell))
    cell, reward, number = cell[order], reward[order], number[order]
    begin = np.searchsorted(cell, np.arange(count))
    slot = np.arange(len(cell)) - begin[cell]
    kept = slot < SLOTS
    slot_reward, slot_rows = np.full((count, SLOTS), np.nan), np.zeros((count, SLOTS))
    slot_reward[cell[kept], slot[kept]], slot_rows[cell[kept], slot[kept]] = reward[kept], number[kept]
    return slot_reward, slot_rows


def usual_rows(pair: Int[np.ndarray, " C"], sums: Sums) -> tuple[Float[np.ndarray, " P"], Float[np.ndarray, " P"]]:
    """How many rows each pair has, and how many of them have its most frequent outcome."""
    rows, usual = np.bincount(pair, sums["cell_rows"]), np.zeros(int(pair.max()) + 1)
    np.maximum.at(usual, pair, sums["slot_rows"].max(axis=1))
    return rows, usual
