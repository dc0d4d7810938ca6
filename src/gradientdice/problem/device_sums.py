"""The moments' sums on a device, fold by fold; what comes back are NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from gradientdice.base.accelerator import Devices, double_precision
from gradientdice.functions.device_rows import DeviceRows
from gradientdice.problem.design import Design


class DeviceSums:
    """Σ w x xᵀ, Σ w x̄' xᵀ, Σ w x, Σ w r x and Σ w of each fold, updated in place."""

    def __init__(self, devices: Devices, width: int, folds: int = 1) -> None:
        shapes = (folds, width, width), (folds, width, width), (folds, width), (folds, width)
        with double_precision():
            self._sums: Any = tuple(devices.put(np.zeros(shape)) for shape in shapes)
        self._weights, self._running = np.zeros(folds), []
        self._devices = devices

    def add(self, design: Design, folds: Int[np.ndarray, " n"] | None = None) -> None:
        """Adds rows, each to its fold. It returns before the device is done with them, but not before the last ones.

        More rows than the place has room for are made and added in pieces.
        """
        current, following = design.current, design.following
        assert isinstance(current, DeviceRows) and isinstance(following, DeviceRows)
        number = np.zeros(len(current), dtype=np.int32) if folds is None else folds.astype(np.int32)
        self._weights += np.bincount(number, design.weights, minlength=len(self._weights))
        size, columns = current.place.rows, (design.rewards, design.weights, number)
        if len(current) <= size:
            self._add(current, following, *columns)
            return
        for piece, (own, after) in enumerate(zip(current.parts, following.parts, strict=True)):
            rows = slice(piece * size, (piece + 1) * size)
            self._add(own, after, *(column[rows] for column in columns))

    def _add(self, current: DeviceRows, following: DeviceRows, *columns: np.ndarray) -> None:
        from gradientdice.functions.device_programs import added

        with double_precision():
            rows = (current.values, following.values, *(current.place.put(column) for column in columns))
            self._sums, done = added(self._sums, *rows)
        # While the device adds these rows the next ones are read; without a limit it would be given all at once.
        self._running.append(done)
        if len(self._running) > 1:
            self._running.pop(0).block_until_ready()

    def totals(self, chosen: Float[np.ndarray, " F"]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
        """The sums of some folds together: those whose share is 1, not 0."""
        from gradientdice.functions.device_programs import totals

        with double_precision():
            found = totals(self._sums, self._devices.put(chosen))
            gram, after, mean, reward = (np.array(part) for part in found)
        return gram, after, mean, reward, float(chosen @ self._weights)
