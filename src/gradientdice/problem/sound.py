"""Are these moments those of any data? Checked at the solver's door, since anyone may put moments together."""

from __future__ import annotations

import numpy as np

from gradientdice.base.arrays import as_numbers
from gradientdice.base.errors import InputError, require_finite, require_number
from gradientdice.problem.moments import Moments

# Second moments are sums of products in float64: what differs by more than this share was never one matrix.
ROUNDING = 1e-8


def as_moments(moments: object) -> Moments:
    """`moments` itself, or an error if it is something else."""
    if not isinstance(moments, Moments):
        raise InputError(f"moments must be Moments, not {type(moments).__name__}: see Moments.from_transitions.")
    return moments


def require_sound(moments: Moments) -> None:
    """An error unless shapes agree, numbers are finite, and C is symmetric with |C_ij|² ≤ C_ii C_jj."""
    size = as_numbers("moments.mean", moments.mean).shape
    if len(size) != 1:
        raise InputError(f"moments.mean must have shape (K,), not {size}.")
    shapes = {"gram": 2 * size, "next_gram": 2 * size, "mean": size, "reward": size, "initial": size}
    for name, shape in shapes.items():
        if name == "initial" and moments.initial is None:
            continue
        array = as_numbers(f"moments.{name}", getattr(moments, name))
        if array.shape != shape:
            raise InputError(f"moments.{name} must have shape {shape}, not {array.shape}.")
        require_finite(f"moments.{name}", array)
    for name in ("weight", "initial_weight", "absorbing_weight"):
        if name != "absorbing_weight" or moments.absorbing_weight is not None:
            require_number(f"moments.{name}", getattr(moments, name), low=0)
    require_number("moments.rank_tolerance", moments.rank_tolerance, low=0, high=1)
    gram = moments.gram
    scale = np.sqrt(np.abs(np.diag(gram)))
    bound = np.outer(scale, scale)
    if (np.diag(gram) < 0).any() or (np.abs(gram) > bound * (1 + ROUNDING) + ROUNDING * bound.max(initial=0.0)).any():
        raise InputError("moments.gram is not a matrix of second moments: no data have such products of features.")
    if (np.abs(gram - gram.T) > ROUNDING * bound.max(initial=0.0)).any():
        raise InputError("moments.gram must be symmetric: it is E[x xᵀ].")
