"""Observations as vectors: dictionaries and tuples are joined, small matrices flattened, images refused.

Gymnasium spaces say how vectors become observations again, and how actions are logged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Num

from gradientdice.base.arrays import as_array, as_numpy
from gradientdice.base.errors import InputError

# A row with more numbers than this, in two or more dimensions, is taken for an image.
LARGEST_MATRIX = 4096


def joined(name: str, value: Any) -> np.ndarray:
    """Observations of many rows as one array: the parts of a dictionary side by side, in the order of their names."""
    if isinstance(value, Mapping):
        if not value:
            raise InputError(f"{name} is an empty dictionary.")
        parts = [joined(f"{name}[{key!r}]", value[key]) for key in sorted(value, key=str)]
    elif isinstance(value, tuple) and value and not all(np.isscalar(part) for part in value):
        parts = [joined(f"{name}[{number}]", part) for number, part in enumerate(value)]
    else:
        return flat(name, as_array(name, as_numpy(value)))
    if any(not part.ndim or len(part) != len(parts[0]) for part in parts):
        raise InputError(f"The parts of {name} must be arrays of one length, with one row per transition.")
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def flat(name: str, array: np.ndarray) -> np.ndarray:
    """Each row as a number or a vector; an error if it is an image."""
    if array.ndim <= 2:
        return array
    require_vector(name, array.shape[1:], array.dtype)
    return array.reshape(len(array), -1)


def require_vector(name: str, shape: tuple[int, ...], kind: np.dtype) -> None:
    """An error if rows of this shape are images."""
    if len(shape) >= 3 or (len(shape) == 2 and (kind == np.uint8 or np.prod(shape) > LARGEST_MATRIX)):
        raise InputError(
            f"{name} holds images of shape {shape}, which say too little as raw numbers. Pass them through an encoder "
            "first, such as the policy's own feature extractor, and give one vector per row."
        )


def one(value: Any) -> np.ndarray:
    """A single observation as a number (without dimensions) or a vector."""
    if isinstance(value, Mapping):
        return np.concatenate([one(value[key]).ravel() for key in sorted(value, key=str)])
    if isinstance(value, tuple):
        return np.concatenate([one(part).ravel() for part in value])
    array = np.asarray(as_numpy(value))
    return array if array.ndim == 0 else array.ravel()


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
