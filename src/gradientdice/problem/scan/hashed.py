"""Places of whole numbers that are too large for a list: a hash table whose look-ups are a few passes over arrays."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

EMPTY = -1
# Slots to begin with, as a power of two.
FEWEST_BITS = 12
# 2⁶⁴ divided by the golden ratio: its multiples are spread evenly over the 64-bit numbers.
SPREAD = np.uint64(0x9E3779B97F4A7C15)


class HashedPlaces:
    """From numbers of 0 or more to their places; a number whose slot is taken goes to the next one that is free."""

    def __init__(self) -> None:
        self._bits, self._count = FEWEST_BITS, 0
        self._make_slots()

    def find(self, numbers: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """The place of each number; −1 for one that has none."""
        slot = self._first_slot(numbers)
        held, place = self._held.take(slot), self._place.take(slot)
        other = np.flatnonzero(held != numbers)
        place[other] = EMPTY
        # Few are left: those that found another number in their slot look into the next.
        other = other[held[other] != EMPTY]
        slot = slot[other]
        while len(other):
            slot = self._next(slot)
            held = self._held.take(slot)
            hit = held == numbers[other]
            place[other[hit]] = self._place.take(slot[hit])
            going_on = ~hit & (held != EMPTY)
            other, slot = other[going_on], slot[going_on]
        return place

    def append(self, numbers: Int[np.ndarray, " m"]) -> None:
        """Gives new numbers, which all differ, the next places."""
        first, self._count = self._count, self._count + len(numbers)
        if 2 * self._count > len(self._held):
            used = self._held != EMPTY
            held, place = self._held[used], self._place[used]
            while 2 * self._count > 1 << self._bits:
                self._bits += 1
            self._bits += 1  # so that the next ones do not move all again
            self._make_slots()
            self._put(held, place)
        self._put(numbers, np.arange(first, self._count, dtype=np.int32))

    def _put(self, numbers: np.ndarray, places: np.ndarray) -> None:
        slot = self._first_slot(numbers)
        while len(numbers):
            free = self._held.take(slot) == EMPTY
            # Of several that write to one slot the last stays, and the others go on.
            self._held[slot[free]] = numbers[free]
            mine = self._held.take(slot) == numbers
            self._place[slot[mine]] = places[mine]
            numbers, places, slot = numbers[~mine], places[~mine], self._next(slot[~mine])

    def _make_slots(self) -> None:
        self._held = np.full(1 << self._bits, EMPTY, dtype=np.int64)
        self._place = np.full(1 << self._bits, EMPTY, dtype=np.int32)

    def _first_slot(self, numbers: np.ndarray) -> np.ndarray:
        spread = numbers.astype(np.uint64)
        spread *= SPREAD
        spread >>= np.uint64(64 - self._bits)
        return spread.view(np.int64)

    def _next(self, slot: np.ndarray) -> np.ndarray:
        return (slot + 1) & (len(self._held) - 1)
