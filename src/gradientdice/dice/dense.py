"""Dense factorisations in float64 where the closed form's sums are too: NumPy, or a GPU if there is one.

Matrices go to the device and come back for each of them: that is K² numbers for K³ operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from gradientdice.base.accelerator import Devices, closed_form_devices, double_precision

# Operations of each, in units of K³, and matrices that a device has room for while it works.
PRODUCT, TRIANGLE, EIGEN, SINGULAR, INVERSE = 2.0, 4.0, 20.0, 8.0, 3.0
COPIES = 8


def devices_for(size: int, cubes: float) -> Devices | None:
    """Where to compute something of K × K matrices that takes so many times K³ operations; None is NumPy."""
    return closed_form_devices(cubes * float(size) ** 3, 8.0 * COPIES * size**2)


def on_first(devices: Devices, program: Callable[..., Any], *arrays: Any) -> Any:
    """A compiled program's results as NumPy arrays. One device does it: factorisations are not shared."""
    import jax

    with double_precision():
        placed = [jax.device_put(array, devices.all[0]) for array in arrays]
        return jax.tree.map(np.array, program(*placed))


def placed(devices: Devices, array: np.ndarray) -> Any:
    """An array on the first device, for several calls of `on_first`."""
    import jax

    with double_precision():
        return jax.device_put(array, devices.all[0])


def eigen(matrix: Float[np.ndarray, "K K"]) -> tuple[Float[np.ndarray, " K"], Float[np.ndarray, "K K"]]:
    """The eigenvalues of a symmetric matrix, the smallest first, and its eigenvectors."""
    devices = devices_for(len(matrix), EIGEN)
    if devices is None:
        return np.linalg.eigh(matrix)
    from gradientdice.dice.device_programs import eigen

    return on_first(devices, eigen, matrix)


def congruent(basis: Float[np.ndarray, "K r"], matrix: Float[np.ndarray, "K K"]) -> Float[np.ndarray, "r r"]:
    """basisᵀ · matrix · basis."""
    devices = devices_for(len(matrix), 2 * PRODUCT)
    if devices is None:
        return basis.T @ matrix @ basis
    from gradientdice.dice.device_programs import congruent

    return on_first(devices, congruent, basis, matrix)


def triangular(matrix: Float[np.ndarray, "m r"]) -> tuple[Float[np.ndarray, "m k"], Float[np.ndarray, "k r"]]:
    """An orthogonal matrix and a triangle whose product is the matrix."""
    devices = devices_for(max(matrix.shape), TRIANGLE)
    if devices is None:
        return np.linalg.qr(matrix)
    from gradientdice.dice.device_programs import triangular

    return on_first(devices, triangular, matrix)


def singular_values(matrix: Float[np.ndarray, "m r"]) -> Float[np.ndarray, " k"]:
    """The singular values, the largest first."""
    devices = devices_for(max(matrix.shape), SINGULAR)
    if devices is None:
        return np.linalg.svd(matrix, compute_uv=False)
    from gradientdice.dice.device_programs import singular_values

    return on_first(devices, singular_values, matrix)
