"""A target policy as a table of probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Integer
from numpy.typing import ArrayLike, DTypeLike

from gradientdice.base.arrays import as_floats, as_states
from gradientdice.base.errors import InputError, first_bad_row, require_distributions


@dataclass(frozen=True, eq=False)
class TabularPolicy:
    """π(a|s) as an (S, A) table; states and actions are whole numbers.

    Example:
        >>> import gradientdice as gd
        >>> gd.TabularPolicy([[0.1, 0.9]]).num_actions
        2
    """

    probabilities: Float[np.ndarray, "S A"]

    if TYPE_CHECKING:

        def __init__(self, probabilities: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        table = np.array(as_floats("probabilities", self.probabilities))
        if table.ndim != 2 or table.size == 0:
            raise InputError(f"probabilities must have shape (states, actions), not {table.shape}.")
        require_distributions("probabilities", table)
        table /= table.sum(axis=1, keepdims=True)
        table.setflags(write=False)
        object.__setattr__(self, "probabilities", table)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.probabilities, dtype=dtype, copy=copy)

    @property
    def num_actions(self) -> int:
        """A."""
        return self.probabilities.shape[1]

    def probabilities_at(self, states: Integer[np.ndarray, " n"]) -> Float[np.ndarray, "n A"]:
        """π(·|s) for each given state."""
        states = as_states(states)
        if states.dtype.kind not in "iu" or states.ndim != 1:
            raise InputError(
                f"A tabular policy needs states that are whole numbers of shape (n,), not {states.dtype} of shape "
                f"{states.shape}. Use DiscretePolicy for other states."
            )
        outside = (states < 0) | (states >= len(self.probabilities))
        if outside.any():
            row = first_bad_row(outside)
            raise InputError(
                f"The policy's table has {len(self.probabilities)} states; row {row} is in state {states[row]}."
            )
        return self.probabilities[states]
