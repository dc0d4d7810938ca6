"""A table of one parameter for each state-action pair."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Integer

from gradientdice.base.errors import InputError, first_bad_row, require_count, require_flag
from gradientdice.functions.rows import SparseRows
from gradientdice.policies import SamplingPolicy, StatePolicy

# The moments of a larger table would take gigabytes.
LARGEST_ROWS = 10_000_000
# Every logged pair has a feature of its own, so that only rounding makes directions disappear.
RANK_TOLERANCE = 1e-10
# States up to this number are found in a list, ten times as fast as by a search: 32 MiB at most.
LONGEST_LIST = 1 << 22


def looks_one_hot(values: np.ndarray) -> bool:
    """True if each row has a single 1 among zeros, in more than one column."""
    return values.shape[1] > 1 and bool(((values == 0) | (values == 1)).all() and (values.sum(axis=1) == 1).all())


def require_discrete(actions: np.ndarray, count: int) -> None:
    """Raise unless these are numbers of a policy's actions."""
    if actions.ndim == 2 and looks_one_hot(actions):
        raise InputError("actions look one-hot, with a column for each action: give actions.argmax(axis=1).")
    if actions.ndim != 1 or actions.dtype.kind not in "iu":
        raise InputError("The policy has discrete actions, so that actions must be whole numbers of shape (n,).")
    outside = (actions < 0) | (actions >= count)
    if outside.any():
        row = first_bad_row(outside)
        raise InputError(
            f"actions must lie in 0 to {count - 1}; row {row} is {actions[row]}. The policy must know every action of "
            f"the log: it has {count}."
        )


@dataclass(frozen=True)
class Tabular:
    """One indicator feature for each of num_states × num_actions pairs, state-major.

    Only the pairs that the log contains cost memory and time: `evaluate` solves the table over those.

    Attributes:
        num_states: S.
        num_actions: A.
        stand_in: what to do where the policy takes an action that the log never contains in that state. True: its
            probability is given to the logged actions of that state, in the proportions of the log, and the answer says
            in which share of the policy's steps that happens. False: such a log is refused.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> gd.Tabular(13, 2).num_features
        26
    """

    num_states: int
    num_actions: int
    stand_in: bool = True

    def __post_init__(self) -> None:
        require_count("num_states", self.num_states)
        require_count("num_actions", self.num_actions)
        require_flag("stand_in", self.stand_in)

    def __repr__(self) -> str:
        more = "" if self.stand_in else ", stand_in=False"
        return f"Tabular(num_states={self.num_states}, num_actions={self.num_actions}{more})"

    @property
    def num_features(self) -> int:
        """The number of pairs, S · A."""
        return self.num_states * self.num_actions

    @property
    def rank_tolerance(self) -> float:
        """Directions of the features below this share of the largest are dropped by a solver."""
        return RANK_TOLERANCE

    def at(self, states: Integer[np.ndarray, " n"], actions: Integer[np.ndarray, " n"]) -> SparseRows:
        """x(s,a), one entry per row."""
        self._require_moderate()
        self.check("states", states, self.num_states)
        self.check("actions", actions, self.num_actions)
        return SparseRows((states.astype(np.int64) * self.num_actions + actions).astype(np.int32)[:, None])

    def expected(self, states: Integer[np.ndarray, " n"], policy: StatePolicy, rng: np.random.Generator) -> SparseRows:
        """Σ_a π(a|s) x(s,a), exactly: one entry per action."""
        self._require_moderate()
        self.check("states", states, self.num_states)
        probabilities = self.probabilities(states, policy)
        indices = states.astype(np.int64)[:, None] * self.num_actions + np.arange(self.num_actions)
        return SparseRows(indices.astype(np.int32), probabilities)

    def probabilities(self, states: Integer[np.ndarray, " n"], policy: StatePolicy) -> np.ndarray:
        """The policy's probabilities at each state; raise if it has other actions than the table."""
        if isinstance(policy, SamplingPolicy):
            raise InputError("A tabular model needs action probabilities: use TabularPolicy or DiscretePolicy.")
        if policy.num_actions != self.num_actions:
            raise InputError(f"The policy has {policy.num_actions} actions but the table has {self.num_actions}.")
        return policy.probabilities_at(states)

    def unlogged_message(self, feature: int, count: int) -> str:
        """The refusal for the first of `count` pairs that the policy takes and the log does not contain."""
        state, action = divmod(feature, self.num_actions)
        other = "" if self.stand_in else ", or give Tabular(…, stand_in=True), which uses the logged actions instead"
        return (
            f"The policy takes action {action} in state {state}, which the log never contains ({count} such pairs). "
            f"Log more data or use features that generalise{other}."
        )

    def _require_moderate(self) -> None:
        if self.num_features > LARGEST_ROWS:
            raise InputError(
                f"The moments of a table of {self.num_features:,} pairs are too large: use evaluate, which solves it "
                "over the logged pairs, or renumber the states."
            )

    @staticmethod
    def check(name: str, values: np.ndarray, count: int) -> None:
        """Raise unless these are whole numbers below `count`."""
        if name == "actions" and values.ndim == 2 and looks_one_hot(values):
            raise InputError("actions look one-hot, with a column for each action: give actions.argmax(axis=1).")
        if values.ndim != 1 or values.dtype.kind not in "iu":
            raise InputError(
                f"{name} must be whole numbers of shape (n,) for a table, not {values.dtype} of shape {values.shape}. "
                "Use LinearFeatures for other spaces."
            )
        outside = (values < 0) | (values >= count)
        if outside.any():
            row = first_bad_row(outside)
            lacking = "a column for each action" if name == "actions" else "a row for each state"
            raise InputError(
                f"{name} must lie in 0 to {count - 1}; row {row} is {values[row]}. The policy's table, or Tabular(…), "
                f"must have {lacking}."
            )


@dataclass(frozen=True, eq=False)
class LoggedTable:
    """A table over the pairs that a log contains: one feature per logged pair, in state-major order.

    States keep their own numbers; only the features are counted from 0 without gaps, so that a table of 10⁸ states
    costs no more than the log.

    Attributes:
        table: the table as given.
        states: the sorted numbers of the states in which the log has rows.
        features: (states, actions) the feature of each pair; −1 where the log has no row.
    """

    table: Tabular
    states: Integer[np.ndarray, " S"]
    features: Integer[np.ndarray, "S A"]

    @classmethod
    def of(cls, table: Tabular, states: Integer[np.ndarray, " n"], actions: Integer[np.ndarray, " n"]) -> LoggedTable:
        """The table over the pairs of these rows."""
        names, index = np.unique(states, return_inverse=True)
        pairs = np.unique(index * table.num_actions + actions)
        features = np.full(len(names) * table.num_actions, -1, dtype=np.int64)
        features[pairs] = np.arange(len(pairs))
        return cls(table, names, features.reshape(len(names), table.num_actions))

    def __repr__(self) -> str:
        return repr(self.table)

    @property
    def num_features(self) -> int:
        """The number of logged pairs."""
        return int(self.features.max()) + 1

    @property
    def rank_tolerance(self) -> float:
        """Directions below this share of the largest are dropped by a solver, as for the whole table."""
        return self.table.rank_tolerance

    def index(self, states: Integer[np.ndarray, " n"]) -> Integer[np.ndarray, " n"]:
        """The position of each state among those of the log; an error for one that is not there."""
        place = self.place(states)
        unknown = place < 0
        if unknown.any():
            row = first_bad_row(unknown)
            raise InputError(f"The log has no row in state {states[row]}. Log more data there.")
        return place

    def place(self, states: Integer[np.ndarray, " n"]) -> Integer[np.ndarray, " n"]:
        """The position of each state among those of the log; −1 for one that is not there."""
        if self._places is None or not len(states):
            place = np.minimum(np.searchsorted(self.states, states), len(self.states) - 1)
            return np.where(self.states[place] == states, place, -1)
        if states.min() >= 0 and states.max() < len(self._places):
            return self._places[states]
        inside = (states >= 0) & (states < len(self._places))
        return np.where(inside, self._places[np.where(inside, states, 0)], -1)

    @cached_property
    def _places(self) -> Integer[np.ndarray, " highest"] | None:
        """The position of each number from 0 to the highest state; None where that would be a long list."""
        if self.states[0] < 0 or self.states[-1] >= LONGEST_LIST:
            return None
        places = np.full(int(self.states[-1]) + 1, -1, dtype=np.int64)
        places[self.states] = np.arange(len(self.states))
        return places

    def at(self, states: Integer[np.ndarray, " n"], actions: Integer[np.ndarray, " n"]) -> SparseRows:
        """x(s,a), one entry per row."""
        return SparseRows(self.features[self.index(states), actions].astype(np.int32)[:, None])

    def expected(self, states: Integer[np.ndarray, " n"], policy: StatePolicy, rng: np.random.Generator) -> SparseRows:
        """Σ_a π(a|s) x(s,a), exactly: one entry per action. The policy takes logged actions only."""
        features = self.features[self.index(states)]
        probabilities = self.table.probabilities(states, policy)
        missing = (features < 0) & (probabilities > 0)
        if missing.any():
            row, action = np.argwhere(missing)[0]
            pair = int(states[row]) * self.table.num_actions + int(action)
            count = len(np.unique(np.argwhere(missing), axis=0))
            raise InputError(self.table.unlogged_message(pair, count))
        return SparseRows(np.maximum(features, 0).astype(np.int32), np.where(features < 0, 0.0, probabilities))

    def unlogged_message(self, feature: int, count: int) -> str:
        """The refusal for the first of `count` pairs that the policy takes and a part of the log does not contain."""
        place, action = np.argwhere(self.features == feature)[0]
        return self.table.unlogged_message(int(self.states[place]) * self.table.num_actions + int(action), count)
