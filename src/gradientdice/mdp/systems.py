"""Linear systems (I − γP) x = b of Markov chains, and their transposes, dense or sparse.

A sparse system is factorised where a band bounds the fill-in beforehand, and is iterated otherwise: on a scale-free
graph the factors of 10⁵ states would be nearly dense. Either way the residual is looked at before the answer is given.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, identity
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import gmres, splu

from gradientdice.base.errors import InputError

Chain = np.ndarray | csr_array

# Factors of at most this many entries, about 120 MB.
MAX_FILL = 10_000_000
# The largest backward error ‖b − Ax‖ / (‖A‖·‖x‖ + ‖b‖), in the norm in which a chain is a contraction.
TOLERANCE = 1e-13
MAX_ROUNDS = 60


def solve_chain(chain: Chain, discount: float, right: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """The x with (I − γP) x = b, or with (I − γPᵀ) x = b; P may be substochastic, so that γ = 1 is allowed."""
    if isinstance(chain, np.ndarray):
        return np.linalg.solve(np.eye(len(chain)) - discount * (chain.T if transposed else chain), right)
    if len(right) == 0:
        return np.zeros(0)
    flow = csr_array(chain.T) if transposed else chain
    system = csr_array(csr_array(identity(len(right), format="csr")) - discount * flow)
    # Distributions are measured by their total, values by their largest.
    norm = 1 if transposed else np.inf
    order = _banded_order(system)
    solved = _iterated(system, right, norm) if order is None else _factorised(system, order, right)
    error = _backward_error(system, solved, right, norm)
    if not error <= TOLERANCE:
        raise InputError(
            f"The equations of {len(right)} states were solved only to a relative residual of {error:.1e}, not "
            f"{TOLERANCE:g}: the chain mixes too slowly. Use a smaller discount, or a model that mixes faster."
        )
    return solved


def _backward_error(system: csr_array, solved: np.ndarray, right: np.ndarray, norm: float) -> float:
    size = np.linalg.norm
    # ‖I − γP‖ ≤ 2 in either case.
    scale = 2 * size(solved, norm) + size(right, norm)
    return float(size(right - system @ solved, norm) / scale) if scale > 0 else 0.0


def _banded_order(system: csr_array) -> np.ndarray | None:
    """An order of the states in which the factors are sure to have at most MAX_FILL entries, if one is found."""
    size = len(system.indptr) - 1
    whole = size * (size + 1)
    busiest = max(int(np.diff(system.indptr).max()), int(np.bincount(system.indices, minlength=size).max()))
    # A state with k neighbours makes any band at least k wide in all; and ordering them takes k² steps.
    if whole > MAX_FILL and size * busiest > MAX_FILL:
        return None
    order = reverse_cuthill_mckee(system)
    place = np.empty(size, dtype=np.int64)
    place[order] = np.arange(size)
    row, column = system.nonzero()
    band = int(np.abs(place[row] - place[column]).max(initial=0))
    return order if min(size * (2 * band + 1), whole) <= MAX_FILL else None


def _factorised(system: csr_array, order: np.ndarray, right: np.ndarray) -> np.ndarray:
    # A diagonally dominant matrix needs no exchange of rows, and without one the band holds.
    factors = splu(
        system[order][:, order].tocsc(),
        permc_spec="NATURAL",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True, "Equil": False},
    )
    solved = np.empty_like(right)
    solved[order] = factors.solve(right[order])
    return solved


def _iterated(system: csr_array, right: np.ndarray, norm: float) -> np.ndarray:
    """Restarted GMRES on what is left over, round after round, until that is rounding or a round no longer helps."""
    solved, left = np.zeros_like(right), right
    for _ in range(MAX_ROUNDS):
        # A round asks for five digits, GMRES's default, so that two or three do. Asked for more at once, it would
        # go by its own running residual, which drifts from the true one.
        step, _ = gmres(system, left, atol=0.0, restart=50, maxiter=20)
        remaining = right - system @ (solved + step)
        if not np.linalg.norm(remaining) < 0.9 * np.linalg.norm(left):
            break
        solved, left = solved + step, remaining
        if _backward_error(system, solved, right, norm) <= TOLERANCE / 10:
            break
    return solved
