"""A target policy that lives in another system: only its choices at the log's own states are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Num
from numpy.typing import ArrayLike

from gradientdice.base.arrays import as_floats, as_numbers, require_moderate
from gradientdice.base.errors import InputError, require_distributions, require_finite
from gradientdice.policies.discrete import DiscretePolicy
from gradientdice.policies.sampling import SamplingPolicy


@dataclass(frozen=True, eq=False)
class LoggedPolicy:
    """π at the log's next states and initial states, as arrays: probabilities, or actions drawn from it.

    Attributes:
        next_probabilities: (n, A), π(·|s') for each transition, in the order of the log's rows: where a reader sorted
            or dropped rows, `data.source_rows` says which of the file they are.
        initial_probabilities: (n0, A), π(·|s0) for each initial state (or, in the order of the episodes' numbers, for
            each episode's first state); not needed at discount 1 unless episodes end.
        next_actions: (n, k) or (n, draws, k), in place of probabilities where actions are continuous.
        initial_actions: (n0, k) or (n0, draws, k).

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> gd.LoggedPolicy(next_probabilities=np.full((5, 2), 0.5)).num_actions
        2
    """

    next_probabilities: Float[np.ndarray, "n A"] | None = None
    initial_probabilities: Float[np.ndarray, "n0 A"] | None = None
    next_actions: Num[np.ndarray, "n ..."] | None = None
    initial_actions: Num[np.ndarray, "n0 ..."] | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            next_probabilities: ArrayLike | None = None,
            initial_probabilities: ArrayLike | None = None,
            next_actions: ArrayLike | None = None,
            initial_actions: ArrayLike | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        if (self.next_probabilities is None) == (self.next_actions is None):
            raise InputError("A LoggedPolicy takes either next_probabilities or next_actions.")
        if self.next_probabilities is None and self.initial_probabilities is not None:
            raise InputError("next_actions go with initial_actions, not with initial_probabilities.")
        if self.next_actions is None and self.initial_actions is not None:
            raise InputError("next_probabilities go with initial_probabilities, not with initial_actions.")
        for name in ("next_probabilities", "initial_probabilities"):
            array = getattr(self, name)
            if array is not None:
                array = as_floats(name, array)
                if array.ndim != 2 or array.size == 0:
                    raise InputError(f"{name} must have shape (n, actions), not {array.shape}.")
                require_distributions(name, array)
                object.__setattr__(self, name, array)
        for name in ("next_actions", "initial_actions"):
            array = getattr(self, name)
            if array is not None:
                array = as_numbers(name, array)
                if array.ndim not in (2, 3) or array.size == 0:
                    raise InputError(f"{name} must have shape (n, k) or (n, draws, k), not {array.shape}.")
                require_finite(name, array)
                require_moderate(name, array)
                object.__setattr__(self, name, array if array.ndim == 3 else array[:, None])

    @property
    def num_actions(self) -> int | None:
        """A, or None where the policy is given by drawn actions."""
        return None if self.next_probabilities is None else self.next_probabilities.shape[1]

    @property
    def knows_initial(self) -> bool:
        """Whether the policy is given at the initial states too."""
        return self.initial_probabilities is not None or self.initial_actions is not None

    def at_next(self, rows: slice, total: int) -> DiscretePolicy | SamplingPolicy:
        """The policy at the next states of some transitions of a log of `total`."""
        self._require_length("next", self.next_probabilities, self.next_actions, total)
        return _fixed(self.next_probabilities, self.next_actions, rows)

    def at_initial(self, total: int) -> DiscretePolicy | SamplingPolicy:
        """The policy at the initial states."""
        if not self.knows_initial:
            raise InputError(
                "The policy is not given at the initial states: give initial_probabilities (or initial_actions), "
                "one row per initial state."
            )
        self._require_length("initial", self.initial_probabilities, self.initial_actions, total)
        return _fixed(self.initial_probabilities, self.initial_actions, slice(None))

    @staticmethod
    def _require_length(which: str, probabilities: np.ndarray | None, actions: np.ndarray | None, total: int) -> None:
        given = len(probabilities) if probabilities is not None else len(actions) if actions is not None else 0
        if given != total:
            raise InputError(f"The policy is given at {given} {which} states, but the log has {total}.")


class _FixedProbabilities(DiscretePolicy):
    """Probabilities that are known row by row, whatever states are asked about; never in blocks."""

    def probabilities_at(self, states: Num[np.ndarray, "n ..."]) -> Float[np.ndarray, "n A"]:
        """The given rows."""
        return self.function(states)


class _FixedActions(SamplingPolicy):
    """Actions that were drawn row by row, one after the other; never in blocks."""

    def sample(self, states: Num[np.ndarray, "n ..."], rng: np.random.Generator) -> Float[np.ndarray, "n ..."]:
        """The next of the given draws."""
        return self.function(states, rng)


def _fixed(
    probabilities: np.ndarray | None, actions: np.ndarray | None, rows: slice
) -> DiscretePolicy | SamplingPolicy:
    """A policy that answers with the given rows, whatever states it is asked about."""
    if probabilities is not None:
        return _FixedProbabilities(lambda states: probabilities[rows], probabilities.shape[1])
    assert actions is not None
    drawn = actions[rows]
    turn = iter(range(drawn.shape[1]))
    return _FixedActions(lambda states, rng: drawn[:, next(turn)], draws=drawn.shape[1])
