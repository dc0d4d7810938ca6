"""A finite Markov decision process with many states, few of which follow any one: exact and sparse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from gradientdice.base.arrays import as_floats
from gradientdice.base.errors import InputError, require_finite
from gradientdice.mdp.draws import RowDraws
from gradientdice.mdp.finite import FiniteMDP


@dataclass(frozen=True, eq=False)
class SparseMDP(FiniteMDP):
    """A `TabularMDP` that stores only the transitions that can happen; memory and time follow their number.

    Large systems are solved iteratively, to a residual near rounding that is checked: an answer that did not
    converge is an error and not a number.

    Attributes:
        transition: p(s'|s,a) as a sparse matrix of shape (S·A, S), one row per pair, state-major.
        reward: E[r|s,a], shape (S, A).
        initial: the distribution of the first state, shape (S,).

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> from scipy.sparse import csr_array
        >>> ring = csr_array((np.ones(1000), (np.arange(1000), (np.arange(1000) + 1) % 1000)))
        >>> mdp = gd.mdp.SparseMDP(ring, np.arange(1000.0)[:, None], np.full(1000, 1 / 1000))
        >>> round(mdp.value(np.ones((1000, 1)), discount=1.0), 6)
        499.5
    """

    transition: csr_array
    reward: Float[np.ndarray, "S A"]
    initial: Float[np.ndarray, " S"]

    if TYPE_CHECKING:

        def __init__(self, transition: ArrayLike | csr_array, reward: ArrayLike, initial: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        if isinstance(self.transition, np.ndarray) and self.transition.ndim == 3:
            raise InputError("transition must have shape (S·A, S): reshape a dense (S, A, S) array, or use TabularMDP.")
        given = self.transition if issparse(self.transition) else as_floats("transition", self.transition)
        if not np.issubdtype(given.dtype, np.number) or np.iscomplexobj(given):
            raise InputError(f"transition must hold numbers, not {given.dtype}.")
        if given.ndim != 2:
            raise InputError(f"transition must have shape (S·A, S), one row per state-action pair, not {given.shape}.")
        transition = csr_array(given, dtype=np.float64, copy=True)
        shape = transition.shape or ()
        pairs, states = shape if len(shape) == 2 else (0, 0)
        if states == 0 or pairs == 0 or pairs % states:
            raise InputError(f"transition must have shape (S·A, S), one row per state-action pair, not {shape}.")
        self._freeze(states, pairs // states)
        transition.sum_duplicates()
        _check_rows(transition)
        transition.eliminate_zeros()
        lengths = np.diff(transition.indptr)
        transition.data /= np.repeat(transition.sum(axis=1), lengths)
        for array in (transition.data, transition.indices, transition.indptr):
            array.setflags(write=False)
        object.__setattr__(self, "transition", transition)

    def expected_next(self, values: Float[np.ndarray, " S"]) -> Float[np.ndarray, "S A"]:
        """Σ_s' p(s'|s,a) values(s')."""
        return (self.transition @ values).reshape(self.reward.shape)

    def state_chain(self, policy: ArrayLike) -> csr_array:
        """P_π(s,s') = Σ_a π(a|s) p(s'|s,a)."""
        states, actions = self.reward.shape
        pairs = states * actions
        choice = csr_array(
            (self._policy(policy).ravel(), np.arange(pairs), np.arange(0, pairs + 1, actions)), shape=(states, pairs)
        )
        chain = csr_array(choice @ self.transition)
        chain.eliminate_zeros()
        return chain

    def _next_draws(self) -> RowDraws:
        return RowDraws.sparse(self.transition)


def _check_rows(transition: csr_array) -> None:
    """The checks of `require_distributions`, on the entries that are stored."""
    require_finite("transition", transition.data)
    if (transition.data < 0).any():
        entry = int(np.argmax(transition.data < 0))
        row = int(np.searchsorted(transition.indptr, entry, side="right")) - 1
        raise InputError(f"transition has a negative probability, first in row {row}: {transition.data[entry]!r}.")
    totals = transition.sum(axis=1)
    off = np.abs(totals - 1) > 1e-6
    if off.any():
        row = int(np.argmax(off))
        raise InputError(
            f"transition must sum to 1 in each row; row {row} sums to {totals[row]:.9g}. Normalise it. Rows are "
            "state-action pairs, state-major: row = state · A + action."
        )
