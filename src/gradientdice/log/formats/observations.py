"""Observations as vectors: dictionaries and tuples are joined, small matrices flattened, images refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gradientdice.base.arrays import as_array
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


def as_numpy(value: Any) -> Any:
    """A tensor of another library as NumPy's array; anything else as it is."""
    detach = getattr(value, "detach", None)  # torch
    return value if detach is None else detach().cpu().numpy()


def one(value: Any) -> np.ndarray:
    """A single observation as a number (without dimensions) or a vector."""
    if isinstance(value, Mapping):
        return np.concatenate([one(value[key]).ravel() for key in sorted(value, key=str)])
    if isinstance(value, tuple):
        return np.concatenate([one(part).ravel() for part in value])
    array = np.asarray(as_numpy(value))
    return array if array.ndim == 0 else array.ravel()
