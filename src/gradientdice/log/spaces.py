"""Between the observations and actions of Gymnasium spaces and the vectors of a log."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Num

from gradientdice.base.errors import InputError
from gradientdice.log.formats.observations import one, require_vector


def as_observations(space: Any, states: Num[np.ndarray, "n ..."]) -> Any:
    """States as observations of a Gymnasium space, a batch of them; an error if they do not fit it."""
    size = size_of(space)
    flat = np.asarray(states).reshape(len(states), -1)
    if flat.shape[1] != size:
        raise InputError(f"The policy takes {size} numbers per state, and the log's states have {flat.shape[1]}.")
    return _unjoined(space, flat)


def size_of(space: Any) -> int:
    """How many numbers an observation of this space has once its parts are joined."""
    kind = type(space).__name__
    if kind == "Dict":
        return sum(size_of(part) for part in space.spaces.values())
    if kind == "Tuple":
        return sum(size_of(part) for part in space.spaces)
    if kind == "Discrete":
        return 1
    if not getattr(space, "shape", None) and getattr(space, "shape", None) != ():
        raise InputError(f"Observations of the space {kind} are no vectors.")
    require_vector("The policy's observation", tuple(space.shape), np.dtype(space.dtype))
    return int(np.prod(space.shape))


def _unjoined(space: Any, flat: np.ndarray) -> Any:
    kind = type(space).__name__
    if kind == "Dict":
        found, start = {}, 0
        for name in sorted(space.spaces, key=str):
            size = size_of(space.spaces[name])
            found[name] = _unjoined(space.spaces[name], flat[:, start : start + size])
            start += size
        return found
    if kind == "Discrete":
        return flat[:, 0].astype(space.dtype)
    return flat.reshape(len(flat), *space.shape).astype(space.dtype)


def as_logged_action(space: Any, action: Any) -> np.ndarray:
    """An action as a log has it: a whole number from 0 for discrete ones, else a vector."""
    if type(space).__name__ == "Discrete":
        return np.asarray(int(action) - int(getattr(space, "start", 0)))
    return one(action)
