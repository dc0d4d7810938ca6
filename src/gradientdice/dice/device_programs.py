"""Dense factorisations and ridge solutions on a device, compiled by JAX. Called inside `double_precision`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax.scipy.linalg import lu_factor, lu_solve
from jaxtyping import Array, Float

from gradientdice.base.compiling import quickly_compiled


@quickly_compiled()
def eigen(matrix: Float[Array, "K K"]) -> tuple[Any, Any]:
    """Eigenvalues and eigenvectors of a symmetric matrix."""
    values, vectors = jnp.linalg.eigh(matrix)
    return values, vectors


@quickly_compiled()
def congruent(basis: Float[Array, "K r"], matrix: Float[Array, "K K"]) -> Float[Array, "r r"]:
    """The product basisᵀ · matrix · basis on a device."""
    return jnp.matmul(jnp.matmul(basis.T, matrix, precision="highest"), basis, precision="highest")


@quickly_compiled()
def triangular(matrix: Float[Array, "m r"]) -> tuple[Any, Any]:
    """An orthogonal matrix and a triangle."""
    orthogonal, triangle = jnp.linalg.qr(matrix)
    return orthogonal, triangle


@quickly_compiled()
def singular_values(matrix: Float[Array, "m r"]) -> Any:
    """The singular values."""
    return jnp.linalg.svd(matrix, compute_uv=False)


@quickly_compiled()
def ridge_solution(
    system: Float[Array, "k k"],
    penalty: Float[Array, " k"],
    ridge: Float[Array, ""],
    right: Float[Array, " k"],
    adjoint_right: Float[Array, " k"],
) -> tuple[Any, Any, Any]:
    """The solutions of a system with ridge × penalty on its diagonal and of its transpose, and its condition number.

    The condition number is exact, in the 1-norm: a device makes the inverse in the time of a few solves.
    """
    matrix = system + jnp.diag(ridge * penalty)
    factors = lu_factor(matrix)
    inverse = lu_solve(factors, jnp.eye(len(matrix)))
    lengths = [jnp.abs(part).sum(axis=0).max() for part in (matrix, inverse)]
    return lu_solve(factors, right), lu_solve(factors, adjoint_right, trans=1), lengths[0] * lengths[1]
