"""A table of one parameter for each state-action pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from gradientdice.errors import InputError, first_bad_row, require_count
from gradientdice.functions.rows import SparseRows
from gradientdice.policies import SamplingPolicy, StatePolicy

# A table of more pairs than this is solved sparsely: below it the dense system takes well under a second.
LARGEST_DENSE = 1_000
# Rows of features have vectors of the table's own length behind them.
LARGEST_ROWS = 10_000_000


@dataclass(frozen=True)
class Tabular:
    """One indicator feature for each of num_states × num_actions pairs, state-major.

    Attributes:
        num_states: S.
        num_actions: A.
        stand_in: what happens where the policy takes an action that the log never shows in that state. True: the logged
            actions stand in for it, and the answer says how often. False: such a log is refused. None: it is refused
            for small tables; in one of more than 1,000 pairs some pair is always missing, so that others stand in.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> gd.Tabular(13, 2).num_features
        26
    """

    num_states: int
    num_actions: int
    stand_in: bool | None = None

    def __post_init__(self) -> None:
        require_count("num_states", self.num_states)
        require_count("num_actions", self.num_actions)
        if self.stand_in not in (None, True, False):
            raise InputError(f"stand_in must be True, False or None, not {self.stand_in!r}.")

    def __repr__(self) -> str:
        more = "" if self.stand_in is None else f", stand_in={self.stand_in}"
        return f"Tabular(num_states={self.num_states}, num_actions={self.num_actions}{more})"

    @property
    def is_sparse(self) -> bool:
        """Whether the closed form goes by the model that the log is, in memory that follows the log."""
        return self.num_features > LARGEST_DENSE if self.stand_in is None else self.stand_in

    @property
    def num_features(self) -> int:
        """S · A."""
        return self.num_states * self.num_actions

    def at(self, states: Int[np.ndarray, " n"], actions: Int[np.ndarray, " n"]) -> SparseRows:
        """x(s,a), one entry a row."""
        self._require_moderate()
        self.check("states", states, self.num_states)
        self.check("actions", actions, self.num_actions)
        return SparseRows((states.astype(np.int64) * self.num_actions + actions).astype(np.int32)[:, None])

    def expected(self, states: Int[np.ndarray, " n"], policy: StatePolicy, rng: np.random.Generator) -> SparseRows:
        """Σ_a π(a|s) x(s,a), exactly: one entry an action."""
        self._require_moderate()
        self.check("states", states, self.num_states)
        if isinstance(policy, SamplingPolicy):
            raise InputError("A tabular model needs action probabilities: use TabularPolicy or DiscretePolicy.")
        if policy.num_actions != self.num_actions:
            raise InputError(f"The policy has {policy.num_actions} actions but the table has {self.num_actions}.")
        indices = states.astype(np.int64)[:, None] * self.num_actions + np.arange(self.num_actions)
        return SparseRows(indices.astype(np.int32), policy.probabilities_at(states))

    def _require_moderate(self) -> None:
        if self.num_features > LARGEST_ROWS:
            raise InputError(
                f"A table of {self.num_features:,} pairs is too large to be solved whole: leave stand_in=False out, "
                "and it is solved over the states that the log shows, or renumber the states."
            )

    @staticmethod
    def check(name: str, values: np.ndarray, count: int) -> None:
        """An error unless these are whole numbers below `count`."""
        if values.ndim != 1 or values.dtype.kind not in "iu":
            raise InputError(
                f"{name} must be whole numbers of shape (n,) for a table, not {values.dtype} of shape {values.shape}. "
                "Use LinearFeatures for other spaces."
            )
        outside = (values < 0) | (values >= count)
        if outside.any():
            row = first_bad_row(outside)
            raise InputError(f"{name} must lie in 0 to {count - 1}; row {row} is {values[row]}.")
