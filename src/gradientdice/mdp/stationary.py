"""The stationary distribution of a finite Markov chain, without a ridge and without an eigensolver.

Grassmann, Taksar and Heyman's elimination (GTH, 1985) uses no subtraction, so every entry is right to
nearly full relative precision however slowly the chain mixes.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from gradientdice.errors import InputError


def closed_classes(chain: Float[np.ndarray, "S S"]) -> list[np.ndarray]:
    """The sets of states that the chain cannot leave, each as a sorted array of state numbers."""
    edges = csr_array(chain > 0)
    count, label = connected_components(edges, directed=True, connection="strong")
    source, target = edges.nonzero()
    leaks = np.zeros(count, dtype=bool)
    leaks[label[source[label[source] != label[target]]]] = True
    return [np.flatnonzero(label == c) for c in range(count) if not leaks[c]]


def stationary_distribution(chain: Float[np.ndarray, "S S"]) -> Float[np.ndarray, " S"]:
    """The one distribution d with d = d·chain.

    Transient states are allowed and get probability 0. Two or more closed classes are refused: the
    long-run average then depends on the starting state, and no single stationary distribution exists.
    """
    classes = closed_classes(chain)
    if len(classes) > 1:
        shown = "; ".join("{" + _shorten(states) + "}" for states in classes[:6])
        more = f" and {len(classes) - 6} more" if len(classes) > 6 else ""
        raise InputError(
            f"At discount 1 the chain under this policy is not ergodic: it has {len(classes)} closed classes, "
            f"{shown}{more}. The average reward then depends on where an episode starts. Use a discount below 1, "
            "or a policy or model that connects these classes."
        )
    recurrent = classes[0]
    distribution = np.zeros(len(chain))
    distribution[recurrent] = _gth(chain[np.ix_(recurrent, recurrent)])
    return distribution


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


def _shorten(states: np.ndarray) -> str:
    names = [str(state) for state in states]
    return ", ".join(names if len(names) <= 12 else [*names[:10], "…", names[-1]])
