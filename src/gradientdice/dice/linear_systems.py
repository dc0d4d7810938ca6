"""Dense linear systems in float64: factorisations, least squares and estimating equations.

Factorisations are made where the closed form's sums are too: in NumPy, or on a GPU if there is one. Matrices go to the
device and come back for each of them: that is K² numbers for K³ operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from jaxtyping import Float

from gradientdice.base.accelerator import Devices, closed_form_devices, double_precision
from gradientdice.dice.saddle import LeastSquares
from gradientdice.dice.solution import Status

# Operations of each, in units of K³, and matrices that a device has room for while it works.
PRODUCT, TRIANGLE, EIGEN, SINGULAR, INVERSE = 2.0, 4.0, 20.0, 8.0, 3.0
COPIES = 8
# Beyond this condition number half of the digits of estimating equations are gone.
POOR = 1e10


def devices_for(size: int, cubes: float) -> Devices | None:
    """Devices for a computation on K × K matrices that takes so many times K³ operations; None is NumPy."""
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
    """The product basisᵀ · matrix · basis."""
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


class FactoredLeastSquares:
    """A least-squares problem, factored once: its solution, its normal matrix's inverse, its singular values.

    That is min ‖matrix·w − target‖² subject to constraint·w = 1, if there is one; of least norm where not unique.
    """

    def __init__(self, problem: LeastSquares) -> None:
        matrix, target = problem.matrix, problem.target
        self._offset, self._free = np.zeros(matrix.shape[1]), None
        self.singular_values, self._triangle = np.zeros(1), None
        self._inverse, self._right = np.zeros(0), np.zeros((0, 0))
        if problem.constraint is not None:
            # Any solution is a particular point of the constraint plus a free move inside its null space.
            length = problem.constraint @ problem.constraint
            if length == 0:
                self.solution, self._right = self._offset, np.zeros((0, len(self._offset)))
                self._free = None
                return
            self._offset = problem.constraint / length
            self._free = scipy.linalg.null_space(problem.constraint[None])
            matrix, target = matrix @ self._free, target - matrix @ self._offset
        if matrix.shape[1] == 0:
            self.solution, self.singular_values = self._offset, np.ones(1)
            return
        # QR takes a fifth of an SVD's time, and the singular values are those of its triangle; only a singular
        # problem needs the SVD's own directions, for the solution of least norm.
        orthogonal, self._triangle = triangular(matrix)
        self.singular_values = singular_values(self._triangle)
        projected = orthogonal.T @ target
        if self.singular_values[-1] > self._cutoff:
            move = scipy.linalg.solve_triangular(self._triangle, projected, check_finite=False)
        else:
            left, values, self._right = np.linalg.svd(self._triangle, full_matrices=False)
            usable = values > self._cutoff
            self._inverse = np.divide(1.0, values, out=np.zeros_like(values), where=usable)
            self._triangle = None
            move = self._right.T @ (self._inverse * (left.T @ projected))
        self.solution = self._offset + (move if self._free is None else self._free @ move)

    def apply_inverse(self, vector: Float[np.ndarray, " r"]) -> Float[np.ndarray, " r"]:
        """(matrixᵀ matrix)⁻¹ · vector, within the constraint's null space if there is a constraint."""
        inner = vector if self._free is None else self._free.T @ vector
        if self._triangle is None:
            result = self._right.T @ (self._inverse**2 * (self._right @ inner))
        else:
            half = scipy.linalg.solve_triangular(self._triangle, inner, trans=1, check_finite=False)
            result = scipy.linalg.solve_triangular(self._triangle, half, check_finite=False)
        return result if self._free is None else self._free @ result

    @property
    def condition_number(self) -> float:
        """The normal equations' condition number (the paper's A_*), the square of the factors' own."""
        smallest = self.singular_values[-1]
        return float((self.singular_values[0] / smallest) ** 2) if smallest > 0 else np.inf

    @property
    def status(self) -> Status:
        """The status of the least-squares solution: unique or not, digits lost or not."""
        if self.singular_values[-1] <= self._cutoff:
            return Status.SINGULAR
        # Beyond 1e7 the normal equations' condition number passes 1e14, and half of the digits are gone.
        poor = self.singular_values[0] > 1e7 * self.singular_values[-1]
        return Status.ILL_CONDITIONED if poor else Status.OK

    @property
    def _cutoff(self) -> float:
        return float(self.singular_values[0]) * len(self.singular_values) * np.finfo(np.float64).eps


class LinearEquations:
    """Linear estimating equations E[J_i] θ = E[h_i], factored once, and sensitivities of functions of their solution.

    Where J is singular, the solution is that of least norm and least squares. A value V(θ) with gradient g moves, where
    observation i counts a little more, by −pᵀ(J_i θ − h_i) with Jᵀp = g: one more solve with the same factors gives the
    influence of every observation.
    """

    def __init__(self, matrix: Float[np.ndarray, "p p"], right: Float[np.ndarray, " p"]) -> None:
        size = len(matrix)
        factor, condition = scipy.linalg.get_lapack_funcs(("getrf", "gecon"), (matrix,))
        upper, pivots, zero_pivot = factor(matrix)
        rcond = 0.0 if zero_pivot else float(condition(upper, np.linalg.norm(matrix, 1))[0])
        self._factors, self._inverse = (upper, pivots), None
        self.condition_number = 1 / rcond if rcond > 0 else np.inf
        if rcond <= size * np.finfo(np.float64).eps:
            self._factors = None
            self._inverse = np.linalg.pinv(matrix, rcond=size * np.finfo(np.float64).eps)
        self.solution = self._apply(right, transposed=False)

    def adjoint(self, gradient: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
        """The p with Jᵀp = gradient."""
        return self._apply(gradient, transposed=True)

    @property
    def status(self) -> Status:
        """The status of the equations' solution: unique or not, digits lost or not."""
        if self._factors is None:
            return Status.SINGULAR
        return Status.ILL_CONDITIONED if self.condition_number > POOR else Status.OK

    def _apply(self, vector: np.ndarray, *, transposed: bool) -> np.ndarray:
        if self._factors is not None:
            return scipy.linalg.lu_solve(self._factors, vector, trans=int(transposed), check_finite=False)
        assert self._inverse is not None
        return (self._inverse.T if transposed else self._inverse) @ vector
