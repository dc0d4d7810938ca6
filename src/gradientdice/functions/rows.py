"""Feature rows x(s,a), dense or sparse, which a function class hands to the moments and to the learners.

Parameters carry the features on their first axis and, behind it, any number of axes of independent runs:
values, gradients and updates then work on whole grids of runs with the runs as the fastest axis.
The methods serve NumPy and JAX arrays alike, except `add`, which is for JAX.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from gradientdice.base.errors import InputError
from gradientdice.functions.device_rows import DeviceRows, TakenRows

# Factoring the dense matrices of a larger table takes minutes; what can be solved sparsely takes seconds.
LARGEST_DENSE = 2048


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
        if isinstance(params, np.ndarray):
            return self._predicted(params)
        return self._weighted(params[self.indices]).sum(axis=1)

    def _predicted(self, params: np.ndarray) -> np.ndarray:
        """Predictions for sparse rows in NumPy, which is slow in sums over a few entries."""
        total: Any = None
        for j in range(self.indices.shape[1]):
            entries = params[self.indices[:, j]]
            if self.coefficients is not None:
                entries = _expand(self.coefficients[:, j], entries) * entries
            total = entries if total is None else total + entries
        return total

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


class BlockRows(NamedTuple):
    """Rows φ(s) ⊗ weights: a block of base features for each discrete action, in NumPy only.

    An action taken has weight 1 in its block; an expectation over actions has their probabilities. An absorbing
    state's indicator may follow as the last column.
    """

    base: np.ndarray  # (n, M)
    weights: np.ndarray  # (n, A)
    absorbing: np.ndarray | None = None  # (n,)

    def __len__(self) -> int:
        return len(self.base)

    def take(self, rows: Any) -> BlockRows:
        """The given rows."""
        return BlockRows(self.base[rows], self.weights[rows], None if self.absorbing is None else self.absorbing[rows])

    def predict(self, params: np.ndarray) -> np.ndarray:
        """x·params for each row: (n, runs)."""
        size, actions = self.base.shape[1], self.weights.shape[1]
        total = np.zeros((len(self.base), *params.shape[1:]))
        for action in range(actions):
            used = np.flatnonzero(self.weights[:, action])
            block = params[action * size : (action + 1) * size]
            total[used] += self.weights[used, action, None] * (self.base[used] @ block)
        return total if self.absorbing is None else total + self.absorbing[:, None] * params[-1]

    def matrix(self, width: int) -> np.ndarray:
        """The rows as a dense (n, width) matrix."""
        dense = (self.weights[:, :, None] * self.base[:, None, :]).reshape(len(self.base), -1)
        return dense if self.absorbing is None else np.column_stack([dense, self.absorbing])

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.base.shape[1] * self.weights.shape[1] + (self.absorbing is not None)


LearnerRows = DenseRows | SparseRows  # what the compiled learners take
Rows = LearnerRows | BlockRows | DeviceRows | TakenRows


def cross_product(
    left: Rows, right: Rows, weights: np.ndarray, width: int, right_width: int | None = None
) -> np.ndarray:
    """leftᵀ diag(weights) right, (width, right_width); the two widths are one if the second is left out."""
    if isinstance(left, BlockRows) and isinstance(right, BlockRows):
        return _block_product(left, right, weights)
    x, y = left.matrix(width), right.matrix(width if right_width is None else right_width)
    product = x.T @ (y if np.all(weights == 1) else y * weights[:, None])
    return as_dense(product)


def add_product(total: np.ndarray, left: Rows, right: Rows, weights: np.ndarray) -> None:
    """Adds leftᵀ diag(weights) right to a dense matrix, in place; a product of rows with themselves takes half."""
    if not (isinstance(left, BlockRows) and isinstance(right, BlockRows)):
        total += cross_product(left, right, weights, len(total))
        return
    left_size, size = left.base.shape[1], right.base.shape[1]
    for a in range(right.weights.shape[1]):
        rows = np.flatnonzero(right.weights[:, a])
        columns = slice(a * size, (a + 1) * size)
        base, share = right.base[rows], weights[rows] * right.weights[rows, a]
        if left is right and (right.weights[rows, a] == 1).all() and (share >= 0).all():
            # Only this block: rows that have all their weight in one have none in another.
            scaled = base if (share == 1).all() else base * np.sqrt(share)[:, None]
            total[columns, columns] += scaled.T @ scaled
        else:
            scaled = base if (share == 1).all() else base * share[:, None]
            for b in range(left.weights.shape[1]):
                own = left.weights[rows, b]
                if own.any():
                    block = slice(b * left_size, (b + 1) * left_size)
                    total[block, columns] += (left.base[rows] * own[:, None]).T @ scaled
        if left.absorbing is not None:
            total[-1, columns] += left.absorbing[rows] @ (base * share[:, None])


def as_dense(product: Any) -> np.ndarray:
    """A product of rows as a dense matrix, refused where solving it would take minutes."""
    if isinstance(product, np.ndarray):
        return product
    if max(product.shape) > LARGEST_DENSE:
        raise InputError(
            f"A table with so many logged pairs makes a dense system of {max(product.shape):,} features. GradientDICE, "
            "GenDICE and DualDICE without a ridge, and LSTDQ, solve it sparsely, in closed form; for other estimators "
            "use features that generalise."
        )
    return product.toarray()


def _block_product(left: BlockRows, right: BlockRows, weights: np.ndarray) -> np.ndarray:
    """Product of block rows, block by block: only rows that have weight in a block are multiplied."""
    left_size, size, actions = left.base.shape[1], right.base.shape[1], right.weights.shape[1]
    product = np.zeros((left.width, right.width))
    for a in range(actions):
        rows = np.flatnonzero(right.weights[:, a])
        columns = slice(a * size, (a + 1) * size)
        if not len(rows):
            continue
        scaled = right.base[rows] * (weights[rows] * right.weights[rows, a])[:, None]
        for b in range(left.weights.shape[1]):
            share = left.weights[rows, b]
            used = np.flatnonzero(share)
            if len(used):
                block = (left.base[rows[used]] * share[used, None]).T @ scaled[used]
                product[b * left_size : (b + 1) * left_size, columns] = block
        if left.absorbing is not None:
            product[-1, columns] = left.absorbing[rows] @ scaled
    return product


def _expand(values: Any, like: Any) -> Any:
    """`values` with trailing axes of length 1, so that it broadcasts against `like` from the left."""
    return values.reshape(values.shape + (1,) * (like.ndim - values.ndim))


def sparse_or_dense(matrix: np.ndarray) -> LearnerRows:
    """The rows of a matrix in the cheaper form: sparse when no row has more than a quarter of its entries."""
    nonzero = matrix != 0
    most = max(1, int(nonzero.sum(axis=1).max()))
    if most * 4 > matrix.shape[1]:
        return DenseRows(matrix)
    # A stable sort of "is zero" brings each row's nonzero columns to the front; the rest have coefficient 0.
    indices = np.argsort(~nonzero, axis=1, kind="stable")[:, :most]
    coefficients = np.take_along_axis(matrix, indices, axis=1)
    return SparseRows(indices.astype(np.int32), None if (coefficients == 1).all() else coefficients)


def plain(rows: Rows) -> LearnerRows:
    """Rows in a form that the compiled learners take."""
    return rows if isinstance(rows, (DenseRows, SparseRows)) else DenseRows(rows.matrix(rows.width))
