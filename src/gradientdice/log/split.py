"""A log in two parts: one to learn a policy from, one to evaluate it with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Int

from gradientdice.base.errors import InputError, require_choice, require_count, require_number
from gradientdice.log.fields import ARRAYS

if TYPE_CHECKING:
    from gradientdice.log.transitions import Transitions


def split(
    data: Transitions, share: float, by: Literal["episodes", "rows"], seed: int
) -> tuple[Transitions, Transitions]:
    """The parts; see `Transitions.split`."""
    require_number("share", share, low=0, high=1, open_low=True)
    require_count("seed", seed, low=0)
    require_choice("by", by, "episodes", "rows")
    if by == "episodes" and data.episodes is None:
        raise InputError(
            'by="episodes" needs a log with episodes. If its rows are independent of each other, give by="rows".'
        )
    if by == "rows" and data.episodes is not None:
        raise InputError(
            'by="rows" would put rows of one episode into both parts, and leave gaps in it: give by="episodes".'
        )
    units = np.arange(len(data)) if data.episodes is None else np.unique(data.episodes, return_inverse=True)[1]
    count = int(units.max()) + 1
    first = round(share * count)
    if not 0 < first < count:
        raise InputError(f"share={share:g} of {count} {by} leaves one part empty: choose another share.")
    chosen = np.zeros(count, dtype=bool)
    chosen[np.random.default_rng(seed).permutation(count)[:first]] = True
    return some_rows(data, np.flatnonzero(chosen[units])), some_rows(data, np.flatnonzero(~chosen[units]))


def some_rows(data: Transitions, kept: Int[np.ndarray, " m"]) -> Transitions:
    """These rows of a log, in this order; the initial states stay as they are."""
    found = {name: getattr(data, name) for name in ARRAYS if name != "initial_states"}
    found["source_rows"] = data.source_rows
    return replace(data, **{name: array[kept] for name, array in found.items() if array is not None})
