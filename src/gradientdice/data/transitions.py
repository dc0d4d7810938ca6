"""Logged transitions: the one input every estimator takes, checked once and then immutable."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Bool, Float, Integer, Num
from numpy.typing import ArrayLike

from gradientdice.data.sequence import in_time_order
from gradientdice.data.units import Units, independent_units
from gradientdice.errors import InputError, first_bad_row, require_finite


@dataclass(frozen=True, eq=False)
class Transitions:
    """Logged transitions (s, a, r, s'), from any number of unknown behaviour policies.

    Attributes:
        states: (n,) whole numbers for tabular problems, or (n, d) numbers.
        actions: (n,) whole numbers for discrete actions, or (n, k) numbers.
        rewards: (n,).
        next_states: the shape of states.
        initial_states: draws from the initial distribution, any number of them. Left out, the first state of each
            episode is used, if each row of it begins where the row before ends; with neither, a discount below 1
            cannot be evaluated.
        terminated: (n,) true where the episode ended in the environment. The library adds the absorbing
            state that follows; next_states in such rows are not used.
        truncated: (n,) true where a time limit cut the episode: the next state is a real one.
        episodes: (n,) the episode of each row; rows of one episode are in time order.
        weights: (n,) how many times each row counts; 1 each if left out. The first state of an episode counts as often
            as its row; initial_states that are given count once each.
        behavior_log_probs: (n,) log-probability of the logged action, for the estimators that need it.

    Example:
        >>> import gradientdice as gd
        >>> data = gd.Transitions(states=[0, 1], actions=[1, 0], rewards=[0.5, 1.0], next_states=[1, 0],
        ...                       initial_states=[0])
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

    if TYPE_CHECKING:
        # Whatever NumPy takes is taken; the fields are arrays.
        def __init__(
            self,
            states: ArrayLike,
            actions: ArrayLike,
            rewards: ArrayLike,
            next_states: ArrayLike,
            initial_states: ArrayLike | None = None,
            terminated: ArrayLike | None = None,
            truncated: ArrayLike | None = None,
            episodes: ArrayLike | None = None,
            weights: ArrayLike | None = None,
            behavior_log_probs: ArrayLike | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                object.__setattr__(self, field.name, _as_array(field.name, value))
        self._check_shapes()
        self._fill_after_ends()
        for field in fields(self):
            array = getattr(self, field.name)
            if array is not None:
                require_finite(field.name, array)
        self._check_values()

    def __len__(self) -> int:
        return len(self.rewards)

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
        if self.episodes is None or not in_time_order(self):
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
    def units(self) -> Units:
        """Which rows belong together because they are not independent: those of an episode, and exact copies."""
        return independent_units(self)

    def redirected(
        self, next_states: Num[np.ndarray, "n ..."], starts: Num[np.ndarray, "n0 ..."] | None
    ) -> Transitions:
        """The same log with other next states, and other initial states if it has any.

        Its rows need not follow each other any more, but where the episodes began is known from before.
        """
        if self.initial_states is not None:
            return replace(self, next_states=next_states, initial_states=starts)
        changed = replace(self, next_states=next_states)
        changed.__dict__["start_states"] = starts
        return changed

    def save(self, path: str | Path) -> None:
        """Writes the log to a .npz, .parquet or .csv file; `gradientdice.load` reads it back bit for bit."""
        from gradientdice.data.files import save

        save(self, Path(path))

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
            >>> data = gd.Transitions([0, 1, 0, 1], [0, 0, 1, 1], [1.0, 0.0, 2.0, 0.0], [1, 0, 1, 0],
            ...                       episodes=[0, 0, 1, 1])
            >>> learn, evaluate = data.split(0.5)
            >>> len(learn), len(evaluate)
            (2, 2)
        """
        from gradientdice.data.split import split

        return split(self, share, by, seed)

    def _check_shapes(self) -> None:
        n = len(self.states)
        if n == 0:
            raise InputError("states is empty: a log needs at least one transition.")
        for name in ("states", "actions", "next_states", "initial_states"):
            array = getattr(self, name)
            if array is not None and array.ndim not in (1, 2):
                raise InputError(f"{name} must have one or two dimensions, not shape {array.shape}; flatten each row.")
        for field in fields(self):
            array = getattr(self, field.name)
            if array is None or field.name == "initial_states":
                continue
            if len(array) != n:
                raise InputError(f"{field.name} has {len(array)} rows but states has {n}: one row per transition.")
            if field.name not in ("states", "actions", "next_states") and array.ndim != 1:
                raise InputError(f"{field.name} must have shape ({n},), not {array.shape}.")
        for name in ("next_states", "initial_states"):
            array = getattr(self, name)
            if array is not None and array.shape[1:] != self.states.shape[1:]:
                raise InputError(f"{name} has rows of shape {array.shape[1:]} but states has {self.states.shape[1:]}.")
        if self.initial_states is not None and len(self.initial_states) == 0:
            raise InputError("initial_states is empty: leave it out or give at least one.")

    def _fill_after_ends(self) -> None:
        """What follows an end is not used; where it is not finite, the state before it is stored."""
        if self.terminated is None or self.next_states.dtype.kind != "f":
            return
        broken = self.terminated & ~np.isfinite(self.next_states).reshape(len(self), -1).all(axis=1)
        if broken.any():
            following = np.array(self.next_states)
            following[broken] = self.states[broken]
            following.setflags(write=False)
            object.__setattr__(self, "next_states", following)

    def _check_values(self) -> None:
        if self.weights is not None:
            if (self.weights < 0).any():
                row = first_bad_row(self.weights < 0)
                raise InputError(f"weights must not be negative; row {row} is {self.weights[row]!r}.")
            if self.weights.sum() <= 0:
                raise InputError("weights are all zero: at least one row must count.")
        if self.terminated is not None and self.truncated is not None and (self.terminated & self.truncated).any():
            row = first_bad_row(self.terminated & self.truncated)
            raise InputError(
                f"row {row} is both terminated and truncated. Keep terminated where the environment itself ended, "
                "truncated where only a time limit did."
            )


_FLOAT = ("rewards", "weights", "behavior_log_probs")
_BOOL = ("terminated", "truncated")


def _as_array(name: str, value: object) -> np.ndarray:
    # A copy, so that the caller's later writes do not reach the log, unless nobody can write.
    array = value if isinstance(value, np.ndarray) and _is_frozen(value) else np.array(value)
    if array.ndim == 0:
        raise InputError(f"{name} must be an array with one row per transition, not the single value {value!r}.")
    if array.dtype.kind not in "buif":
        raise InputError(f"{name} must hold numbers, not {array.dtype}.")
    if name in _FLOAT:
        array = array.astype(np.float64)
    elif name in _BOOL:
        bad = (array != 0) & (array != 1)
        if bad.any():
            row = first_bad_row(bad)
            raise InputError(f"{name} must be true or false; row {row} is {array[row]!r}.")
        array = array.astype(bool)
    elif name == "episodes" and array.dtype.kind not in "iu":
        raise InputError(f"episodes must be whole numbers, not {array.dtype}.")
    elif array.dtype.kind == "b" or array.dtype == np.uint64:
        # Unsigned numbers of this size and signed ones have no common type but floats.
        if array.dtype == np.uint64 and len(array) and array.max() > np.iinfo(np.int64).max:
            raise InputError(f"{name} has a number beyond {np.iinfo(np.int64).max}: renumber it.")
        array = array.astype(np.int64)
    array.setflags(write=False)
    return array


def _is_frozen(array: np.ndarray) -> bool:
    """Whether this array of numbers owns its memory and cannot be written."""
    return array.base is None and not array.flags.writeable and array.dtype.kind in "biuf"
