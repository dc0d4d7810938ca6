"""Markov chains, dense or sparse: systems (I − γP) x = b, stationary distributions, differential values.

A sparse system is factorised where a band bounds the fill-in beforehand, and is iterated otherwise: on a scale-free
graph the factors of 10⁵ states would be nearly dense. Either way the residual is looked at before the answer is given.

A stationary distribution needs neither a ridge nor an eigensolver. Grassmann, Taksar and Heyman's elimination (GTH,
1985) uses no subtraction, so every entry is right to nearly full relative precision however slowly the chain mixes. A
large sparse chain is solved as a linear system instead, which is right to a checked residual.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, identity
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee
from scipy.sparse.linalg import gmres, splu

from gradientdice.base.errors import InputError

Chain = np.ndarray | csr_array

# Factors of at most this many entries, about 120 MB.
MAX_FILL = 10_000_000
# The largest backward error ‖b − Ax‖ / (‖A‖·‖x‖ + ‖b‖), in the norm in which a chain is a contraction.
LARGEST_ERROR = 1e-13
MAX_ROUNDS = 60
# Stationary distributions of sparse chains up to this size are found by dense elimination.
MAX_GTH = 400
# The largest ‖d − d·chain‖₁ of a stationary distribution that is given out.
LARGEST_RESIDUAL = 1e-12


def solve_chain(chain: Chain, discount: float, right: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """Solve (I − γP) x = b, or (I − γPᵀ) x = b; P may be substochastic, so that γ = 1 is allowed."""
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
    if not error <= LARGEST_ERROR:
        raise InputError(
            f"The equations of {len(right)} states were solved only to a relative residual of {error:.1e}, not "
            f"{LARGEST_ERROR:g}: the chain mixes too slowly. Use a smaller discount, or a model that mixes faster."
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
        if _backward_error(system, solved, right, norm) <= LARGEST_ERROR / 10:
            break
    return solved


def closed_classes(chain: Chain) -> list[np.ndarray]:
    """The sets of states that the chain cannot leave, each as a sorted array of state numbers."""
    edges = csr_array(chain > 0)
    count, label = connected_components(edges, directed=True, connection="strong")
    source, target = edges.nonzero()
    leaks = np.zeros(count, dtype=bool)
    leaks[label[source[label[source] != label[target]]]] = True
    by_class = np.argsort(label, kind="stable")
    groups = np.split(by_class, np.cumsum(np.bincount(label, minlength=count))[:-1])
    return [group for group, leak in zip(groups, leaks, strict=True) if not leak]


def stationary_distribution(chain: Chain) -> np.ndarray:
    """The one stationary distribution d, with d = d·chain.

    Transient states are allowed and get probability 0. Two or more closed classes are refused: the
    long-run average then depends on the starting state, and no single stationary distribution exists.
    """
    recurrent = _recurrent(chain)
    if isinstance(chain, np.ndarray):
        distribution = np.zeros(len(chain))
        distribution[recurrent] = _gth(chain[np.ix_(recurrent, recurrent)])
        return distribution
    inner = csr_array(chain[recurrent][:, recurrent])
    distribution = np.zeros(len(chain.indptr) - 1)
    distribution[recurrent] = _gth(inner.toarray()) if len(recurrent) <= MAX_GTH else _solved(inner)
    return distribution


def differential_values(chain: Chain, reward: np.ndarray, stationary: np.ndarray) -> np.ndarray:
    """Differential values, V = r − ρ + PV with d·V = 0, where ρ = d·r."""
    gain = reward - stationary @ reward
    if isinstance(chain, np.ndarray):
        # The rank-one term picks, among all solutions of V = r − ρ + PV, the one with d·V = 0.
        return solve_chain(chain - np.outer(np.ones(len(chain)), stationary), 1.0, gain)
    # The same solution without the dense term: V = 0 at the likeliest state, shifted afterwards.
    anchor = int(np.argmax(stationary))
    others = np.delete(np.arange(len(reward)), anchor)
    values = np.zeros(len(reward))
    values[others] = solve_chain(csr_array(chain[others][:, others]), 1.0, gain[others])
    return values - stationary @ values


def _recurrent(chain: Chain) -> np.ndarray:
    """The one closed class; raise with the several where there are more."""
    classes = closed_classes(chain)
    if len(classes) > 1:
        shown = "; ".join("{" + _shorten(states) + "}" for states in classes[:6])
        more = f" and {len(classes) - 6} more" if len(classes) > 6 else ""
        raise InputError(
            f"At discount 1 the chain under this policy is not ergodic: it has {len(classes)} closed classes, "
            f"{shown}{more}. The average reward then depends on where an episode starts. Use a discount below 1, "
            "or a policy or model that connects these classes."
        )
    return classes[0]


def _gth(chain: np.ndarray) -> np.ndarray:
    """GTH elimination on an irreducible chain: censor the states one by one, then substitute back."""
    work = np.array(chain, dtype=np.float64)
    size = len(work)
    for last in range(size - 1, 0, -1):
        work[:last, last] /= work[last, :last].sum()
        work[:last, :last] += np.outer(work[:last, last], work[last, :last])
    distribution = np.ones(size)
    for state in range(1, size):
        distribution[state] = distribution[:state] @ work[:state, state]
    return distribution / distribution.sum()


def _solved(chain: csr_array) -> np.ndarray:
    """Stationary distribution of an irreducible sparse chain: one state has weight 1, the others' are solved for."""
    size = len(chain.indptr) - 1
    rough = np.full(size, 1 / size)
    # A few lazy steps find a state that is visited often: relative to a rare one the others would be huge.
    for _ in range(30):
        rough = (rough + chain.T @ rough) / 2
    anchor = int(np.argmax(rough))
    others = np.delete(np.arange(size), anchor)
    weights = np.ones(size)
    entering = chain[[anchor]][:, others].toarray().ravel()
    weights[others] = solve_chain(csr_array(chain[others][:, others]), 1.0, entering, transposed=True)
    # Rounding may leave a state that is hardly ever visited slightly below 0.
    distribution = np.maximum(weights, 0)
    distribution /= distribution.sum()
    residual = np.abs(chain.T @ distribution - distribution).sum()
    if not residual <= LARGEST_RESIDUAL:
        raise InputError(
            f"The stationary distribution of {size} states was found only to a residual of {residual:.1e}, not "
            f"{LARGEST_RESIDUAL:g}. Use a discount below 1, or a policy or model that mixes faster."
        )
    return distribution


def _shorten(states: np.ndarray) -> str:
    names = [str(state) for state in states]
    return ", ".join(names if len(names) <= 12 else [*names[:10], "…", names[-1]])
