"""The stationary distribution of a finite Markov chain, without a ridge and without an eigensolver.

Grassmann, Taksar and Heyman's elimination (GTH, 1985) uses no subtraction, so every entry is right to
nearly full relative precision however slowly the chain mixes. A large sparse chain is solved as a linear
system instead, which is right to a checked residual.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from gradientdice.base.errors import InputError
from gradientdice.mdp.systems import Chain, solve_chain

# Sparse chains up to this size are eliminated densely.
MAX_GTH = 400
# The largest ‖d − d·chain‖₁ of a stationary distribution that is given out.
TOLERANCE = 1e-12


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
    """The one distribution d with d = d·chain.

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
    """V with V = r − ρ + PV and d·V = 0, where ρ = d·r."""
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
    """The one closed class, or an error that shows the several."""
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
    """An irreducible sparse chain: give one state weight 1, solve for the others' weights, normalise."""
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
    if not residual <= TOLERANCE:
        raise InputError(
            f"The stationary distribution of {size} states was found only to a residual of {residual:.1e}, not "
            f"{TOLERANCE:g}. Use a discount below 1, or a policy or model that mixes faster."
        )
    return distribution


def _shorten(states: np.ndarray) -> str:
    names = [str(state) for state in states]
    return ", ".join(names if len(names) <= 12 else [*names[:10], "…", names[-1]])
