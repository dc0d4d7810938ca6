"""Cells of a table (state, action, next state or end) as numbers, and their places in a list of those that came."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from gradientdice.functions import Tabular
from gradientdice.log.transitions import Transitions
from gradientdice.problem.scan.hashed import HashedPlaces

# A list of places for this many codes takes 128 MiB; larger tables have a hash table of the codes that came.
LARGEST_LIST = 1 << 25


@dataclass(frozen=True)
class CellCodes:
    """Cells as numbers: ((state · actions) + action) · (states + 1) + next state, which is `states` after an end."""

    table: Tabular

    def of(self, data: Transitions) -> Int[np.ndarray, " n"]:
        """The code of each row; an error for states or actions outside the table."""
        table = self.table
        states, actions, following = data.states, data.actions, data.next_states
        if not (
            _inside(states, table.num_states)
            and _inside(actions, table.num_actions)
            and _inside(following, table.num_states)
        ):
            # What follows an end is not used and may be anything.
            following = np.where(data.ended, states, following) if following.ndim == 1 else following
            for name, values in (("states", states), ("next_states", following)):
                table.check(name, values, table.num_states)
            table.check("actions", actions, table.num_actions)
        # The narrower type takes half the time.
        code = states.astype(np.int32 if self.count <= np.iinfo(np.int32).max else np.int64)
        code *= table.num_actions
        code += actions.astype(code.dtype, copy=False)
        code *= table.num_states + 1
        following = following.astype(code.dtype, copy=False)
        code += following if data.terminated is None else np.where(data.terminated, table.num_states, following)
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
        self._hashed = HashedPlaces()
        if known is not None:
            self._append(known)

    def __reduce__(self) -> tuple[type, tuple[CellCodes, np.ndarray]]:
        return CellPlaces, (self._kind, self.codes)  # the list is made anew where it is used

    def of(self, codes: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """The numbers of these codes; new ones get the next."""
        place = self.find(codes)
        if place.min(initial=0) < 0:
            unknown = np.flatnonzero(place < 0)
            self._append(self._first_of_each(codes[unknown]))
            place[unknown] = self.find(codes[unknown])
        return place

    def find(self, codes: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
        """The numbers of these codes; −1 for one that did not come yet."""
        if self._list is not None:
            return self._list.take(codes)
        return self._hashed.find(codes)

    def _first_of_each(self, codes: Int[np.ndarray, " m"]) -> Int[np.ndarray, " u"]:
        """Codes that did not come yet, each once, in the order in which they come."""
        if self._list is None:
            new, first = np.unique(codes, return_index=True)
            return new[np.argsort(first)]
        rows = np.arange(len(codes), dtype=np.int32)
        # Of several numbers that are written to one place the last one stays: backwards, that of the first row.
        self._list[codes[::-1]] = rows[::-1]
        return codes[self._list.take(codes) == rows]

    def _append(self, new: np.ndarray) -> None:
        start = len(self.codes)
        self.codes = np.concatenate([self.codes, new])
        if self._list is not None:
            self._list[new] = np.arange(start, len(self.codes))
        else:
            self._hashed.append(new)


def _inside(values: np.ndarray, count: int) -> bool:
    """Whether these are single whole numbers below `count`."""
    if values.ndim != 1 or values.dtype.kind not in "iu" or not len(values):
        return False
    return bool(values.min() >= 0 and values.max() < count)
