"""Feature rows x(s,a), dense or sparse: what a function class hands to the moments and to the learners.

Parameters carry the features on their first axis and, behind it, any number of axes of independent runs:
values, gradients and updates then work on whole grids of runs with the runs as the fastest axis.
The methods serve NumPy and JAX arrays alike, except `add`, which is for JAX.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array


class DenseRows(NamedTuple):
    """Rows as a matrix (n, K)."""

    values: Any

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Any) -> DenseRows:
        """The given rows."""
        return DenseRows(self.values[rows])

    def predict(self, params: Any) -> Any:
        """x·params for each row: (n, *runs)."""
        return self.values @ params

    def add(self, params: Any, amounts: Any) -> Any:
        """Params + Σ_i amounts_i x_i."""
        return params + self.values.T @ amounts

    def matrix(self, width: int) -> np.ndarray:
        """The rows as an (n, width) matrix."""
        return np.asarray(self.values)


class SparseRows(NamedTuple):
    """Rows with m entries each: x = Σ_j coefficients_j e_{indices_j}; coefficients None means 1."""

    indices: Any
    coefficients: Any = None

    def __len__(self) -> int:
        return len(self.indices)

    def take(self, rows: Any) -> SparseRows:
        """The given rows."""
        return SparseRows(self.indices[rows], None if self.coefficients is None else self.coefficients[rows])

    def predict(self, params: Any) -> Any:
        """x·params for each row: (n, *runs)."""
        return self._weighted(params[self.indices]).sum(axis=1)

    def add(self, params: Any, amounts: Any) -> Any:
        """Params + Σ_i amounts_i x_i, touching only the entries that the rows name."""
        for j in range(self.indices.shape[1]):
            change = amounts
            if self.coefficients is not None:
                change = _expand(self.coefficients[:, j], amounts) * amounts
            params = params.at[self.indices[:, j]].add(change)
        return params

    def matrix(self, width: int) -> csr_array:
        """The rows as an (n, width) sparse matrix."""
        n, m = self.indices.shape
        values = (
            np.ones(n * m) if self.coefficients is None else np.asarray(self.coefficients, dtype=np.float64).ravel()
        )
        return csr_array((values, np.asarray(self.indices).ravel(), np.arange(n + 1) * m), shape=(n, width))

    def _weighted(self, entries: Any) -> Any:
        return entries if self.coefficients is None else _expand(self.coefficients, entries) * entries


Rows = DenseRows | SparseRows


def _expand(values: Any, like: Any) -> Any:
    """`values` with trailing axes of length 1, so that it broadcasts against `like` from the left."""
    return values.reshape(values.shape + (1,) * (like.ndim - values.ndim))


def sparse_or_dense(matrix: np.ndarray) -> Rows:
    """The rows of a matrix in the cheaper form: sparse when no row has more than a quarter of its entries."""
    nonzero = matrix != 0
    most = max(1, int(nonzero.sum(axis=1).max()))
    if most * 4 > matrix.shape[1]:
        return DenseRows(matrix)
    # A stable sort of "is zero" brings each row's nonzero columns to the front; the rest have coefficient 0.
    indices = np.argsort(~nonzero, axis=1, kind="stable")[:, :most]
    coefficients = np.take_along_axis(matrix, indices, axis=1)
    return SparseRows(indices.astype(np.int32), None if (coefficients == 1).all() else coefficients)
