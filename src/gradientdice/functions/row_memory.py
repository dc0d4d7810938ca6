"""Memory for dense feature rows, which may be used again for the next ones."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


class RowMemory:
    """Where feature rows are written.

    New arrays of megabytes come from the system page by page, which takes longer than to write the features: whoever
    asks for rows chunk by chunk, and is done with each before the next, gives the same memory for all.

    Attributes:
        after: how many columns of zeros follow the features.
    """

    def __init__(self, after: int = 0) -> None:
        self.after = after
        self._kept = np.empty((0, 0))
        self._spare = [np.empty((0, 0)), np.empty((0, 0))]

    def rows(self, count: int, width: int) -> Float[np.ndarray, "count width"]:
        """Rows of any content; those given before are lost."""
        self._kept = _enough(self._kept, count, width)
        return self._kept[:count]

    def spare(self, number: int, shape: tuple[int, ...]) -> Float[np.ndarray, "count width"]:
        """The same for one of two intermediate results."""
        count, width = shape
        self._spare[number] = _enough(self._spare[number], count, width)
        return self._spare[number][:count]


def _enough(memory: np.ndarray, count: int, width: int) -> np.ndarray:
    """This memory, or new one if it is too small or of another width."""
    return memory if memory.shape[1] == width and len(memory) >= count else np.empty((count, width))
