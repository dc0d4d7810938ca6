"""The one entrance for arrays: values that NumPy would silently make into something else are refused by name.

NumPy drops masks, keeps complex and object entries, and makes ragged lists, sets and generators into single objects.
Every array that a user gives or a user's function returns comes through here.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from gradientdice.base.errors import InputError, first_bad_row, require_finite

# Squares of larger numbers, and sums of them over a log, overflow.
LARGEST = 1e100
# Of the memory that is free, one array may take so much: its users make copies.
MEMORY_SHARE = 0.5
# Arrays of so many bytes are made without asking how much memory is free, which takes as long as making them.
ALWAYS_FITS = 1 << 20


def as_array(name: str, value: Any, *, copy: bool = True) -> np.ndarray:
    """`value` as an array of NumPy's own kinds, without mask.

    Args:
        name: what to call it in an error.
        value: whatever NumPy takes.
        copy: whether it is kept, so that an array that somebody can write must be copied.
    """
    if value is None:
        raise InputError(f"{name} is None: give an array.")
    if isinstance(value, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(value)
        if mask.any():
            row = first_bad_row(mask) if mask.ndim else 0
            raise InputError(f"{name} has a masked value, first in row {row}. Fill or drop such rows.")
        value = value.data
    if type(value) is np.ndarray and is_frozen(value):
        return value
    try:
        array = np.array(value) if copy else np.asarray(value)
    except Exception as error:  # whatever the object's own conversion raises
        reason = "rows of different lengths" if "inhomogeneous" in str(error) else _first_line(error)
        raise InputError(f"{name} cannot be made into an array: {reason}. Give numbers in rows of one length.") from (
            error
        )
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array


def as_numpy(value: Any) -> Any:
    """A tensor of another library as NumPy's array; anything else as it is."""
    detach = getattr(value, "detach", None)  # torch
    return value if detach is None else detach().cpu().numpy()


def as_numbers(name: str, value: Any, *, copy: bool = True) -> np.ndarray:
    """`value` as an array of real numbers; words, objects, dates and complex numbers are refused."""
    array = as_array(name, value, copy=copy)
    if array.dtype.kind not in "buif":
        raise InputError(f"{name} must hold numbers, not {_kind(array)}.")
    # No other part of the library, nor JAX, knows numbers of more than 64 bits.
    return array.astype(np.float64) if array.dtype.kind == "f" and array.dtype.itemsize > 8 else array


def as_floats(name: str, value: Any, *, copy: bool = True) -> np.ndarray:
    """`value` as an array of float64."""
    return as_numbers(name, value, copy=copy).astype(np.float64, copy=False)


def as_states(value: Any) -> np.ndarray:
    """States that a policy is asked at: an array as it is, anything else as numbers in rows."""
    array = value if type(value) is np.ndarray and value.dtype.kind in "buif" else as_numbers("states", value)
    if array.ndim == 0:
        raise InputError("states must have one row per state, not a single number.")
    return array


def require_rng(rng: object) -> None:
    """Raise unless this is a generator of random numbers."""
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng must be a numpy Generator, as numpy.random.default_rng(0) gives, not {rng!r:.60}.")


def is_frozen(array: np.ndarray) -> bool:
    """True if this array of numbers owns its memory and cannot be written."""
    return array.base is None and not array.flags.writeable and array.dtype.kind in "biuf" and array.dtype.isnative


def require_usable(name: str, array: np.ndarray) -> None:
    """Raise if a number is not finite, or so large that its square overflows."""
    if not is_usable(array):
        require_finite(name, array)
        require_moderate(name, array)


def is_usable(array: np.ndarray) -> bool:
    """True if one pass shows that all numbers are finite and moderate; if it does not, they may still be."""
    if array.dtype != np.float64 or not array.flags.c_contiguous:
        return False
    flat = array.reshape(-1)
    with np.errstate(all="ignore"):
        # A sum of squares that is small enough has no square that is not.
        return bool(flat @ flat <= LARGEST**2)


def require_moderate(name: str, array: np.ndarray) -> None:
    """Raise if a number is so large that its square overflows."""
    if array.dtype.kind != "f" or not array.size:
        return
    if max(abs(float(array.max())), abs(float(array.min()))) > LARGEST:
        row = first_bad_row(np.abs(array) > LARGEST)
        raise InputError(
            f"{name} has a number beyond {LARGEST:g}, first in row {row}: its square overflows. Divide by a constant."
        )


def require_memory(what: str, *shape: int, remedy: str) -> None:
    """Raise if an array of this shape in float64 would not fit into the memory that is free."""
    needed = 8.0
    for length in shape:
        needed *= length
    if needed <= ALWAYS_FITS:
        return
    free = free_memory()
    if needed > MEMORY_SHARE * free:
        size = " × ".join(f"{length:,}" for length in shape)
        raise InputError(
            f"{what} would take {needed / 2**30:,.1f} GiB ({size} numbers), and {free / 2**30:,.1f} GiB are free. "
            f"{remedy}"
        )


def free_memory() -> float:
    """The bytes that a process may still take, as far as the system tells; infinite where it does not."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return 1024.0 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, AttributeError):
        return float("inf")


def _kind(array: np.ndarray) -> str:
    """The kind of an array's entries that are no numbers, with the first of them."""
    names = {"U": "words", "S": "words", "c": "complex numbers", "M": "dates", "m": "durations", "V": "records"}
    if array.dtype.kind != "O":
        shown = f" such as {array.flat[0]!s:.40}" if array.size and array.dtype.kind in "US" else ""
        return names.get(array.dtype.kind, str(array.dtype)) + shown
    for place, entry in enumerate(array.flat):
        if isinstance(entry, (str, bytes)) or not np.isscalar(entry):
            row = place // max(1, array.size // len(array)) if array.ndim else 0
            return f"a {type(entry).__name__} (row {row}: {entry!r:.40})"
    return "objects"


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
