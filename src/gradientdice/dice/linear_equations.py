"""Linear estimating equations E[J_i] θ = E[h_i], and the sensitivity of a function of their solution.

A value V(θ) with gradient g moves, where observation i counts a little more, by −pᵀ(J_i θ − h_i) with Jᵀp = g: one more
solve with the same factors gives the influence of every observation.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from jaxtyping import Float

from gradientdice.dice.status import Status

# Beyond this condition number half of the digits are gone.
POOR = 1e10


class LinearEquations:
    """J θ = h, factored once: the solution, of least norm and least squares where J is singular."""

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
        """Whether the solution is unique and how many of its digits hold."""
        if self._factors is None:
            return Status.SINGULAR
        return Status.ILL_CONDITIONED if self.condition_number > POOR else Status.OK

    def _apply(self, vector: np.ndarray, *, transposed: bool) -> np.ndarray:
        if self._factors is not None:
            return scipy.linalg.lu_solve(self._factors, vector, trans=int(transposed), check_finite=False)
        assert self._inverse is not None
        return (self._inverse.T if transposed else self._inverse) @ vector
