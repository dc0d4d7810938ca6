"""A log's feature rows in chunks, as often as they are needed: kept if they are small, made again if they are not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from gradientdice.base.accelerator import Devices, closed_form_devices, may_have_devices
from gradientdice.base.errors import InputError, require_count
from gradientdice.functions import FeatureMap, FittedKernel, LinearFeatures, LinearFunctions
from gradientdice.functions.device_features import DeviceFeatures
from gradientdice.functions.rows import Rows
from gradientdice.log.transitions import Transitions
from gradientdice.policies import LoggedPolicy, Policy
from gradientdice.problem.design import Design, LogFeatures, feature_rows, fit_functions, initial_rows
from gradientdice.problem.entrance import require_functions, require_types

CHUNK_ROWS = 65_536
CACHE_BYTES = 2 << 30
# Features are kept for other policies if those of the whole log take no more than this.
SHARED_BYTES = 256 << 20
# Of a float64; and how many folds' sums a device must have room for.
BYTES, SUMS_AT_ONCE = 8, 6


class SharedFeatures:
    """What the feature rows of one log and one function class have in common, whatever the policy.

    Attributes:
        functions: the function class, scaled to the log; None until it is.
        chunks: the features of each chunk.
        moments: the moments of each chunk, of which all but those of the following rows are the same.
        sums: by fold, the moments' sums over the current rows; None until they are known.
    """

    def __init__(self) -> None:
        self.functions: FeatureMap | None = None
        self.chunks: dict[int, LogFeatures] = {}
        self.moments: dict[int, Any] = {}
        self.sums: Any = None


class LogDesign:
    """The feature rows of a log under a policy and a function class.

    Draws from a policy that can only be sampled depend on seed and chunk alone, so that every pass sees the same.
    """

    def __init__(
        self,
        data: Transitions,
        policy: Policy,
        functions: LinearFunctions,
        *,
        seed: int = 0,
        chunk_rows: int = CHUNK_ROWS,
        cache_bytes: int = CACHE_BYTES,
        features: SharedFeatures | None = None,
    ) -> None:
        require_types(data, policy)
        require_functions(functions)
        if functions is None:
            raise InputError("functions is None: give Tabular(…), LinearFeatures(…), RandomFourier(…) or Nystrom(…).")
        require_count("seed", seed, low=0)
        require_count("chunk_rows", chunk_rows)
        self.data, self.policy = data, policy
        self.features = SharedFeatures() if features is None else features
        self.functions = self.features.functions or fit_functions(functions, data, policy)
        self.features.functions = self.functions
        self.knows_initial = not isinstance(policy, LoggedPolicy) or policy.knows_initial
        self._seed, self._chunk_rows, self._cache_bytes = seed, chunk_rows, cache_bytes
        self._kept: dict[int, Design] = {}

    def chunks(self) -> Iterator[tuple[slice, Design]]:
        """Which transitions, and their feature rows; these are on a device if there are `devices`."""
        if self.devices is not None:
            yield from self._device_chunks(self.devices)
            return
        n = len(self.data)
        for start in range(0, n, self._chunk_rows):
            rows = slice(start, min(start + self._chunk_rows, n))
            if start in self._kept:
                yield rows, self._kept[start]
                continue
            known = self.features.chunks.get(start) or LogFeatures()
            design = feature_rows(self.data, self.policy, self.functions, rows, self._rng(start), known)
            size = _row_bytes(design) * n
            if size <= self._cache_bytes:
                self._kept[start] = design
            if size <= SHARED_BYTES:
                self.features.chunks[start] = known
            yield rows, design

    def _device_chunks(self, devices: Devices) -> Iterator[tuple[slice, Design]]:
        n, size = len(self.data), min(self._chunk_rows, len(self.data))
        assert isinstance(self.functions, (LinearFeatures, FittedKernel))
        functions = DeviceFeatures.of(self.functions, devices, size)
        # Rows that fit into the devices' memory stay there for the next pass.
        kept = 2 * n * self.width * BYTES <= devices.memory * devices.count
        for start in range(0, n, size):
            rows = slice(start, min(start + size, n))
            design = self._kept.get(start)
            if design is None:
                known = LogFeatures(absorbing=self.absorbing)
                design = feature_rows(self.data, self.policy, functions, rows, self._rng(start), known)
                if kept:
                    self._kept[start] = design
            yield rows, design

    @cached_property
    def devices(self) -> Devices | None:
        """What the rows are made on; None is NumPy."""
        if not (isinstance(self.functions, (LinearFeatures, FittedKernel)) and may_have_devices()):
            return None
        n, width = len(self.data), self.width
        chunk = min(self._chunk_rows, n)
        # Two products of all rows; sums of some folds, and the rows of a chunk.
        return closed_form_devices(4.0 * n * width**2, BYTES * 2 * (SUMS_AT_ONCE * width**2 + chunk * width))

    @cached_property
    def initial(self) -> Rows | None:
        """Rows for the initial states, or None if the log has none."""
        return initial_rows(self.data, self.policy, self.functions, self._rng(-1))

    @cached_property
    def initial_weights(self) -> Float[np.ndarray, " n0"]:
        """How many times each row of `initial` counts; needs initial states."""
        weights = self.data.start_weights
        assert weights is not None
        return weights

    @property
    def first(self) -> Design:
        """The first chunk: it shows the width and whether there is an absorbing state."""
        return next(self.chunks())[1]

    @property
    def width(self) -> int:
        """The number of features, the absorbing state's included."""
        return self._shape[0]

    @property
    def absorbing(self) -> bool:
        """Whether the last feature is that of the absorbing state."""
        return self._shape[1]

    @cached_property
    def _shape(self) -> tuple[int, bool]:
        """Width and absorbing, from a single row: a whole chunk that is not kept would be made again."""
        row = feature_rows(self.data, self.policy, self.functions, slice(0, 1), self._rng(0))
        return row.width, row.absorbing

    def _rng(self, chunk: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, chunk + 1])


def _row_bytes(design: Design) -> int:
    """The bytes that one transition's current and following rows take."""
    leaves = [
        leaf
        for rows in (design.current, design.following)
        if isinstance(rows, tuple)
        for leaf in rows
        if leaf is not None
    ]
    return sum(leaf.nbytes for leaf in leaves) // max(1, len(design.rewards))
