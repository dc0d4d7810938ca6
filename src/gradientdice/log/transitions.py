"""Logged transitions: the one input every estimator takes, checked once and then immutable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Bool, Float, Integer, Num
from numpy.typing import ArrayLike

from gradientdice.base.arrays import as_numbers, require_moderate
from gradientdice.base.errors import InputError, first_bad_row, require_finite
from gradientdice.log.digest import log_digest
from gradientdice.log.dropped import Dropped
from gradientdice.log.fields import ARRAYS, REQUIRED, as_column_names, as_field, as_names, as_next_states
from gradientdice.log.sequence import time_order
from gradientdice.log.summary import summary
from gradientdice.log.units import Units, independent_units


@dataclass(frozen=True, eq=False, repr=False)
class Transitions:
    """Logged transitions (s, a, r, s'), from any number of unknown behaviour policies.

    Attributes:
        states: (n,) whole numbers for tabular problems, or (n, d) numbers.
        actions: (n,) whole numbers for discrete actions, or (n, k) numbers.
        rewards: (n,).
        next_states: the shape of states. None is a bandit: every row is an episode of one step, which then ends, and
            its state an initial state unless others are given.
        initial_states: draws from the initial distribution, any number of them. Left out, the first state of each
            episode is used, if each row of it begins where the row before ends; with neither, a discount below 1
            cannot be evaluated.
        terminated: (n,) true where the episode ended in the environment. The library adds the absorbing
            state that follows; next_states in such rows are not used.
        truncated: (n,) true where a time limit cut the episode: the next state is a real one. Where both are true the
            episode has ended, and the time limit does not matter.
        episodes: (n,) the episode of each row, by whole numbers or by names, which are then numbered in the order in
            which they first appear; rows of one episode are in time order.
        weights: (n,) how many times each row counts; 1 each if left out. The first state of an episode counts as often
            as its row; initial_states that are given count once each.
        behavior_log_probs: (n,) log-probability of the logged action, for the estimators that need it.
        action_names: the word of each action's code, where actions were words; None where they were numbers.
        state_names: the same for states.
        action_columns: the name of each number of an action, for reports; None where none is known.
        state_columns: the same for states.
        notes: what a reader of the log guessed or changed, in phrases.
        dropped_rows: what is known of rows that a reader dropped, if it dropped any.
        source_rows: (n,) the number of each row in the file or frame, from 0, where a reader sorted or dropped rows.

    Example:
        >>> import gradientdice as gd
        >>> data = gd.Transitions(
        ...     states=[0, 1],
        ...     actions=[1, 0],
        ...     rewards=[0.5, 1.0],
        ...     next_states=[1, 0],
        ...     initial_states=[0],
        ... )
        >>> len(data)
        2
    """

    states: Num[np.ndarray, "n ..."]
    actions: Num[np.ndarray, "n ..."]
    rewards: Float[np.ndarray, " n"]
    next_states: Num[np.ndarray, "n ..."]
    initial_states: Num[np.ndarray, "n0 ..."] | None = None
    terminated: Bool[np.ndarray, " n"] | None = None
    truncated: Bool[np.ndarray, " n"] | None = None
    episodes: Integer[np.ndarray, " n"] | None = None
    weights: Float[np.ndarray, " n"] | None = None
    behavior_log_probs: Float[np.ndarray, " n"] | None = None
    action_names: tuple[str, ...] | None = None
    state_names: tuple[str, ...] | None = None
    action_columns: tuple[str, ...] | None = None
    state_columns: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    dropped_rows: Dropped | None = None
    source_rows: Integer[np.ndarray, " n"] | None = None
    # Whether a log in which every weight is 0 is refused.
    needs_counted_rows: ClassVar[bool] = True
    # Whether arrays that somebody else can write are copied.
    copies: ClassVar[bool] = True

    if TYPE_CHECKING:
        # Whatever NumPy takes is taken; the fields are arrays.
        def __init__(
            self,
            states: ArrayLike,
            actions: ArrayLike,
            rewards: ArrayLike,
            next_states: ArrayLike | None,
            initial_states: ArrayLike | None = None,
            terminated: ArrayLike | None = None,
            truncated: ArrayLike | None = None,
            episodes: ArrayLike | None = None,
            weights: ArrayLike | None = None,
            behavior_log_probs: ArrayLike | None = None,
            # Wider than what is taken, so that a dictionary of arrays may be spread into the call.
            action_names: Sequence[str] | ArrayLike | None = None,
            state_names: Sequence[str] | ArrayLike | None = None,
            action_columns: Sequence[str] | ArrayLike | None = None,
            state_columns: Sequence[str] | ArrayLike | None = None,
            notes: Sequence[str] | ArrayLike = (),
            dropped_rows: Dropped | Sequence[str] | ArrayLike | None = None,
            source_rows: ArrayLike | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.next_states is None:
            self._make_bandit()
        for name in ARRAYS:
            value = getattr(self, name)
            if value is None and name in REQUIRED:
                raise InputError(f"{name} is None: a log needs one row of it per transition.")
            if value is not None and name != "next_states":
                self._set(name, as_field(name, value, copy=self.copies))
        following = as_next_states(self.next_states, self.states, self.terminated, copy=self.copies)
        self._set("next_states", following)
        self._check_shapes()
        for name in ARRAYS:
            array = getattr(self, name)
            if array is not None:
                require_finite(name, array)
                if name != "rewards":  # a problem says what to do with rewards
                    require_moderate(name, array)
        self._check_values()
        self._check_words()

    def __len__(self) -> int:
        return len(self.rewards)

    def __repr__(self) -> str:
        return summary(self)

    @property
    def row_weights(self) -> Float[np.ndarray, " n"]:
        """How many times each row counts: the weights given, else 1 each."""
        return np.ones(len(self)) if self.weights is None else self.weights

    @property
    def ended(self) -> Bool[np.ndarray, " n"]:
        """Whether the episode ended in the environment after each row."""
        return np.zeros(len(self), dtype=bool) if self.terminated is None else self.terminated

    @cached_property
    def start_states(self) -> Num[np.ndarray, "n0 ..."] | None:
        """The initial states given, else the first state of each episode; None without either.

        An episode whose rows do not follow each other has no known first state, and one whose first row counts 0 times
        has none that counts: without any that does, there are none.
        """
        if self.initial_states is not None:
            return self.initial_states
        if self.episodes is None or self.time_order is None:
            return None
        first = self.first_rows
        if not self.row_weights[first].any():
            return None
        starts = self.states[first]
        starts.setflags(write=False)
        return starts

    @property
    def start_weights(self) -> Float[np.ndarray, " n0"] | None:
        """How many times each of `start_states` counts; None without any.

        The first state of an episode counts as often as its row. Initial states that are given are draws from the
        initial distribution, not rows of the log: the log's weights say nothing of them, and they count once each.
        """
        if self.start_states is None:
            return None
        if self.initial_states is not None:
            return np.ones(len(self.initial_states))
        return self.row_weights[self.first_rows]

    @cached_property
    def first_rows(self) -> Integer[np.ndarray, " E"]:
        """The first row of each episode, in the order of the episodes' numbers; needs episodes."""
        assert self.episodes is not None
        _, first = np.unique(self.episodes, return_index=True)
        return first

    @cached_property
    def time_order(self) -> Integer[np.ndarray, " n"] | None:
        """The rows, episode after episode, each in time order; None if they do not follow each other."""
        return time_order(self)

    @cached_property
    def units(self) -> Units:
        """Which rows belong together because they are not independent: those of an episode, and exact copies."""
        return independent_units(self)

    @property
    def distinct_rows(self) -> Float[np.ndarray, " n"]:
        """How many rows of the log each of these stands for: 0 where it counts 0 times, or is a copy."""
        return self.units.distinct.astype(np.float64)

    @cached_property
    def digest(self) -> str:
        """A digest of all columns: equal for equal logs, so that answers know whether they come from one log."""
        return log_digest(self)

    def redirected(
        self, next_states: Num[np.ndarray, "n ..."], starts: Num[np.ndarray, "n0 ..."] | None
    ) -> Transitions:
        """The same log with other next states, and other initial states if it has any.

        Its rows need not follow each other any more, but where the episodes began is known from before.
        """
        if self.initial_states is not None:
            return replace(self, next_states=next_states, initial_states=starts)
        own = {field.name: getattr(self, field.name) for field in fields(Transitions)}
        return Redirected(**{**own, "next_states": next_states}, known_starts=starts)

    def save(self, path: str | Path) -> None:
        """Writes the log to a .npz, .parquet or .csv file; `gradientdice.load` reads it back bit for bit."""
        from gradientdice.log.files import save

        save(self, path)

    def split(
        self, share: float, by: Literal["episodes", "rows"] = "episodes", seed: int = 0
    ) -> tuple[Transitions, Transitions]:
        """Two parts of the log at random: one to learn a policy from, one to evaluate it with.

        A policy that was learned from the rows that evaluate it looks better than it is, and no interval knows that.
        Initial states, where they are given, belong to both parts.

        Args:
            share: of the episodes (or rows) that the first part gets.
            by: "episodes" keeps each episode whole; "rows" is for logs of independent rows.
            seed: for the choice.

        Example:
            >>> import gradientdice as gd
            >>> data = gd.Transitions(
            ...     [0, 1, 0, 1],
            ...     [0, 0, 1, 1],
            ...     [1.0, 0.0, 2.0, 0.0],
            ...     [1, 0, 1, 0],
            ...     episodes=[0, 0, 1, 1],
            ... )
            >>> learn, evaluate = data.split(0.5)
            >>> len(learn), len(evaluate)
            (2, 2)
        """
        from gradientdice.log.split import split

        return split(self, share, by, seed)

    def _check_shapes(self) -> None:
        n = len(self.states)
        if n == 0:
            raise InputError("states is empty: a log needs at least one transition.")
        for name in ("states", "actions", "next_states", "initial_states"):
            array = getattr(self, name)
            if array is not None and array.ndim not in (1, 2):
                raise InputError(f"{name} must have one or two dimensions, not shape {array.shape}; flatten each row.")
            if array is not None and array.ndim == 2 and array.shape[1] == 0:
                raise InputError(f"{name} has rows without numbers (shape {array.shape}): give at least one column.")
        for name in ARRAYS:
            array = getattr(self, name)
            if array is None or name == "initial_states":
                continue
            if len(array) != n:
                raise InputError(f"{name} has {len(array)} rows but states has {n}: one row per transition.")
            if name not in ("states", "actions", "next_states") and array.ndim != 1:
                raise InputError(f"{name} must have shape ({n},), not {array.shape}.")
        for name in ("next_states", "initial_states"):
            array = getattr(self, name)
            if array is not None and array.shape[1:] != self.states.shape[1:]:
                raise InputError(f"{name} has rows of shape {array.shape[1:]} but states has {self.states.shape[1:]}.")
        if self.initial_states is not None and len(self.initial_states) == 0:
            raise InputError("initial_states is empty: leave it out or give at least one.")

    def _set(self, name: str, array: np.ndarray) -> None:
        array.setflags(write=False)
        object.__setattr__(self, name, array)

    def _make_bandit(self) -> None:
        """Every row is an episode of one step."""
        states = as_numbers("states", self.states)
        if states.ndim == 0:
            return  # refused with the other fields
        if self.truncated is not None:
            raise InputError("truncated is for logs with next_states: without them every row ends after its one step.")
        object.__setattr__(self, "next_states", states)
        object.__setattr__(self, "terminated", np.ones(len(states), dtype=bool))
        if self.initial_states is None and self.episodes is None:
            object.__setattr__(self, "episodes", np.arange(len(states)))

    def _check_values(self) -> None:
        if self.weights is not None:
            if (self.weights < 0).any():
                row = first_bad_row(self.weights < 0)
                raise InputError(f"weights must not be negative; row {row} is {self.weights[row]!r:.60}.")
            if self.needs_counted_rows and self.weights.sum() <= 0:
                raise InputError("weights are all zero: at least one row must count.")
        if self.terminated is not None and self.truncated is not None and (self.terminated & self.truncated).any():
            self._set("truncated", self.truncated & ~self.terminated)

    def _check_words(self) -> None:
        for kind, array in (("action", self.actions), ("state", self.states)):
            for name, checked in ((f"{kind}_names", as_names), (f"{kind}_columns", as_column_names)):
                if getattr(self, name) is not None:
                    object.__setattr__(self, name, checked(name, getattr(self, name), array))
        if not isinstance(self.notes, (list, tuple)) or not all(isinstance(note, str) for note in self.notes):
            raise InputError(f"notes must be a tuple of phrases, not {self.notes!r:.60}.")
        object.__setattr__(self, "notes", tuple(self.notes))
        if self.source_rows is not None:
            rows = as_numbers("source_rows", self.source_rows)
            if rows.shape != (len(self),) or rows.dtype.kind not in "iu":
                raise InputError(f"source_rows must be whole numbers of shape ({len(self)},), not {rows.shape}.")
            self._set("source_rows", rows)
        if not (self.dropped_rows is None or isinstance(self.dropped_rows, Dropped)):
            object.__setattr__(self, "dropped_rows", Dropped.read(self.dropped_rows))


@dataclass(frozen=True, eq=False, repr=False)
class Redirected(Transitions):
    """A log some of whose next states were changed: its rows do not follow each other, but its starts are known.

    Attributes:
        known_starts: (n0,) the first state of each episode before the change; None if they were not known.
    """

    known_starts: Num[np.ndarray, "n0 ..."] | None = None

    if TYPE_CHECKING:

        def __init__(self, **columns: Any) -> None: ...

    @cached_property
    def start_states(self) -> Num[np.ndarray, "n0 ..."] | None:
        """The initial states as they were known."""
        return self.known_starts


@dataclass(frozen=True, eq=False, repr=False)
class SameUnits(Transitions):
    """Another version of a log whose rows belong together as they did in the first.

    Attributes:
        known_units: which rows are not independent.
    """

    known_units: Units | None = None

    if TYPE_CHECKING:

        def __init__(self, **columns: Any) -> None: ...

    @cached_property
    def units(self) -> Units:
        """The units of the first version."""
        assert self.known_units is not None
        return self.known_units
