"""Feature rows that are made on a device and stay there; results come back as NumPy arrays.

A chunk of rows is filled up with rows of weight 0 to a number that all chunks have, so that each program is compiled
once and several devices get equal shares of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from gradientdice.base.accelerator import Devices, double_precision
from gradientdice.functions.kernel_features import FourierFeatures, LandmarkFeatures


@dataclass(frozen=True, eq=False)
class Place:
    """Devices on which rows are made, and the features that they are made of.

    Attributes:
        devices: which devices.
        rows: how many rows every chunk is filled up to; the devices divide it.
        features: of the inputs; None if the inputs are the features.
    """

    devices: Devices
    rows: int
    features: FourierFeatures | LandmarkFeatures | None

    @cached_property
    def arrays(self) -> tuple[Any, ...]:
        """The features' own arrays on the devices. Needs `double_precision`."""
        return () if self.features is None else tuple(self.devices.put(array) for array in self.features.arrays)

    def put(self, array: np.ndarray, axis: int = 0) -> Any:
        """Numbers of rows on the devices, filled up with zeros. Needs `double_precision`."""
        missing = [(0, 0)] * array.ndim
        missing[axis] = (0, self.rows - array.shape[axis])
        return self.devices.put(np.pad(array, missing) if missing[axis][1] else array, axis)


@dataclass(frozen=True, eq=False)
class DeviceRows:
    """Rows φ(inputs) ⊗ weights, with the absorbing state's indicator behind them.

    Attributes:
        place: where they are made.
        inputs: (m, n, d) of each row m inputs, over which φ is averaged; the features themselves if φ is not known.
        weights: (n, A) one block of features for each discrete action; a single column of ones for continuous ones.
        absorbing: (n,) or None.
    """

    place: Place
    inputs: Float[np.ndarray, "m n d"]
    weights: Float[np.ndarray, "n A"]
    absorbing: Float[np.ndarray, " n"] | None = None

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def width(self) -> int:
        """The number of columns."""
        features = self.place.features
        size = self.inputs.shape[2] if features is None else features.size
        return size * self.weights.shape[1] + (self.absorbing is not None)

    @cached_property
    def values(self) -> Any:
        """The rows on the devices, filled up with zeros: (place.rows, width)."""
        from gradientdice.functions.device_programs import feature_rows

        place, features = self.place, self.place.features
        with double_precision():
            return feature_rows(
                None if features is None else features.traced,
                place.arrays,
                place.put(self.inputs, 1),
                place.put(self.weights),
                None if self.absorbing is None else place.put(self.absorbing),
            )

    @property
    def parts(self) -> list[DeviceRows]:
        """More rows than the place has room for, in pieces that fit."""
        size = self.place.rows
        return [self.part(slice(start, start + size)) for start in range(0, len(self), size)]

    def part(self, rows: slice) -> DeviceRows:
        """Rows that follow each other, made by themselves."""
        absorbing = None if self.absorbing is None else self.absorbing[rows]
        return DeviceRows(self.place, self.inputs[:, rows], self.weights[rows], absorbing)

    def take(self, rows: Any) -> TakenRows:
        """The given rows."""
        return TakenRows(self, np.arange(len(self))[rows])

    def predict(self, params: np.ndarray) -> np.ndarray:
        """x·params for each row: (n, runs)."""
        from gradientdice.functions.device_programs import predictions

        if len(self) > self.place.rows:
            return np.concatenate([part.predict(params) for part in self.parts])
        with double_precision():
            return np.asarray(predictions(self.values, self.place.devices.put(np.asarray(params))))[: len(self)]

    def matrix(self, width: int) -> np.ndarray:
        """The rows as an (n, width) matrix."""
        if len(self) > self.place.rows:
            return np.concatenate([part.matrix(width) for part in self.parts])
        return np.asarray(self.values)[: len(self)]

    def sent(self, ended: np.ndarray) -> DeviceRows:
        """Rows with the absorbing state in place of those that ended."""
        weights = np.where(ended[:, None], 0.0, self.weights)
        return replace(self, weights=weights, absorbing=ended.astype(np.float64))


@dataclass(frozen=True, eq=False)
class TakenRows:
    """Some of the rows of a chunk. The device works on all of them, in a program that it has already.

    Attributes:
        chunk: all rows.
        rows: which of them.
    """

    chunk: DeviceRows
    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.chunk.width

    def take(self, rows: Any) -> TakenRows:
        """The given rows."""
        return TakenRows(self.chunk, self.rows[rows])

    def predict(self, params: np.ndarray) -> np.ndarray:
        """x·params for each row: (n, runs)."""
        return self.chunk.predict(params)[self.rows]

    def matrix(self, width: int) -> np.ndarray:
        """The rows as an (n, width) matrix."""
        return self.chunk.matrix(width)[self.rows]
