"""A log's feature rows in chunks, as often as they are needed: kept if they are small, made again if they are not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from gradientdice.data.transitions import Transitions
from gradientdice.functions.design import Design, Functions, feature_rows, fit_functions, initial_rows
from gradientdice.functions.rows import Rows
from gradientdice.functions.support import policy_table, stand_in
from gradientdice.functions.tabular import Tabular
from gradientdice.policies import LoggedPolicy, Policy

CHUNK_ROWS = 65_536
CACHE_BYTES = 2 << 30


class LogDesign:
    """The feature rows of a log under a policy and a function class.

    In a table where logged actions stand in for those never logged, `data` and `policy` keep to what is logged, and
    `given` are the two as they were given.

    Draws from a policy that can only be sampled depend on seed and chunk alone, so that every pass sees the same.
    """

    def __init__(
        self, data: Transitions, policy: Policy, functions: Functions, *, seed: int = 0, chunk_rows: int = CHUNK_ROWS
    ) -> None:
        self.functions = fit_functions(functions, data, policy)
        self.knows_initial = not isinstance(policy, LoggedPolicy) or policy.knows_initial
        self.given = self.data, self.policy = data, policy
        if isinstance(self.functions, Tabular) and self.functions.is_sparse:
            if isinstance(policy, LoggedPolicy):
                self.given = data, policy_table(data, policy, self.functions)
            self.data, self.policy = stand_in(*self.given, self.functions)
        self._seed, self._chunk_rows = seed, chunk_rows
        self._kept: dict[int, Design] = {}

    def without_any(self, parts: np.ndarray) -> LogDesign:
        """The same for fits that leave out any one of these parts: a stand-in must then be in two of them."""
        if not (isinstance(self.functions, Tabular) and self.functions.is_sparse):
            return self
        data, policy = stand_in(*self.given, self.functions, parts)
        alike = Tabular(self.functions.num_states, self.functions.num_actions, stand_in=False)
        return LogDesign(data, policy, alike, seed=self._seed, chunk_rows=self._chunk_rows)

    def chunks(self) -> Iterator[tuple[slice, Design]]:
        """Which transitions, and their feature rows."""
        n = len(self.data)
        for start in range(0, n, self._chunk_rows):
            rows = slice(start, min(start + self._chunk_rows, n))
            if start in self._kept:
                yield rows, self._kept[start]
                continue
            design = feature_rows(self.data, self.policy, self.functions, rows, self._rng(start))
            if _row_bytes(design) * n <= CACHE_BYTES:
                self._kept[start] = design
            yield rows, design

    @cached_property
    def initial(self) -> Rows | None:
        """Rows for the initial states, or None if the log has none."""
        return initial_rows(self.data, self.policy, self.functions, self._rng(-1))

    @cached_property
    def ended_share(self) -> float:
        """The share of the rows after which an episode ended."""
        return float(self.data.ended.mean())

    @property
    def first(self) -> Design:
        """The first chunk: it shows the width and whether there is an absorbing state."""
        return next(self.chunks())[1]

    def _rng(self, chunk: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, chunk + 1])


def _row_bytes(design: Design) -> int:
    """The bytes that one transition's current and following rows take."""
    return sum(leaf.nbytes for rows in (design.current, design.following) for leaf in rows if leaf is not None) // max(
        1, len(design.rewards)
    )
