"""A least-squares problem, factored once: its solution, its normal matrix's inverse, its singular values."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from jaxtyping import Float

from gradientdice.dice.dense import singular_values, triangular
from gradientdice.dice.saddle import LeastSquares
from gradientdice.dice.status import Status


class FactoredLeastSquares:
    """min ‖matrix·w − target‖² subject to constraint·w = 1, if there is one; of least norm where not unique."""

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
        """Of the normal equations, the paper's A_*: the square of the factors' own."""
        smallest = self.singular_values[-1]
        return float((self.singular_values[0] / smallest) ** 2) if smallest > 0 else np.inf

    @property
    def status(self) -> Status:
        """Whether the solution is unique and how many of its digits hold."""
        if self.singular_values[-1] <= self._cutoff:
            return Status.SINGULAR
        # Beyond 1e7 the normal equations' condition number passes 1e14, and half of the digits are gone.
        poor = self.singular_values[0] > 1e7 * self.singular_values[-1]
        return Status.ILL_CONDITIONED if poor else Status.OK

    @property
    def _cutoff(self) -> float:
        return float(self.singular_values[0]) * len(self.singular_values) * np.finfo(np.float64).eps
