"""Features that the user supplies, and the memory that feature rows are written to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Num

from gradientdice.base.arrays import as_floats, is_usable, require_usable
from gradientdice.base.errors import InputError, require_callable, require_count, require_flag
from gradientdice.functions.rows import DenseRows
from gradientdice.policies import SamplingPolicy, StatePolicy

RANK_TOLERANCE = 1e-10
RESULT = "The feature function's result"


class RowMemory:
    """Memory for dense feature rows, which may be used again for the next ones.

    New arrays of megabytes come from the system page by page, which takes longer than to write the features: whoever
    asks for rows chunk by chunk, and is done with each before the next, gives the same memory for all.

    Attributes:
        after: the number of columns of zeros behind the features.
    """

    def __init__(self, after: int = 0) -> None:
        self.after = after
        self._kept = np.empty((0, 0))
        self._spare = [np.empty((0, 0)), np.empty((0, 0))]

    def rows(self, count: int, width: int) -> Float[np.ndarray, "count width"]:
        """Rows of any content; those given before are lost."""
        self._kept = _enough(self._kept, count, width)
        return self._kept[:count]

    def spare(self, number: int, shape: tuple[int, ...]) -> Float[np.ndarray, "count width"]:
        """Memory of any content for one of two intermediate results; an earlier one of this number is lost."""
        count, width = shape
        self._spare[number] = _enough(self._spare[number], count, width)
        return self._spare[number][:count]


def _enough(memory: np.ndarray, count: int, width: int) -> np.ndarray:
    """This memory, or new one if it is too small or of another width."""
    return memory if memory.shape[1] == width and len(memory) >= count else np.empty((count, width))


@dataclass(frozen=True, eq=False)
class LinearFeatures:
    """Linear functions τ and f of features x(s,a).

    Attributes:
        function: (states (n, …), actions (n, …)) -> (n, K) features.
        intercept: whether to add a constant feature. With one in the span, GradientDICE does not depend on
            its norm_penalty at a discount below 1 and equals LSTDQ; without one the penalty matters.
        draws: how many actions to draw in each state from a policy that can only be sampled.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> features = gd.LinearFeatures(
        ...     lambda states, actions: np.column_stack([states, actions])
        ... )
        >>> features.at(np.arange(3), np.arange(3)).values.shape
        (3, 3)
    """

    function: Callable[[np.ndarray, np.ndarray], np.ndarray]
    intercept: bool = True
    draws: int = 8

    def __post_init__(self) -> None:
        require_callable("function", self.function, "(states, actions) -> features")
        require_flag("intercept", self.intercept)
        require_count("draws", self.draws)

    @property
    def rank_tolerance(self) -> float:
        """Directions of the features below this share of the largest are dropped by a solver."""
        return RANK_TOLERANCE

    def unlogged_message(self, feature: int, count: int) -> str:
        """The refusal for the first of `count` features that the policy reaches and the log does not."""
        return (
            f"Feature {feature} is 0 in every logged row but not where the policy goes ({count} such features). "
            "Log more data, or leave the feature out."
        )

    def at(self, states: Num[np.ndarray, "n ..."], actions: Num[np.ndarray, "n ..."]) -> DenseRows:
        """The features x(s,a)."""
        return DenseRows(self.written_at(states, actions, RowMemory()))

    def written_at(
        self, states: Num[np.ndarray, "n ..."], actions: Num[np.ndarray, "n ..."], memory: RowMemory
    ) -> Float[np.ndarray, "n K"]:
        """The features x(s,a), in memory that somebody gives."""
        features = self._result(states, actions)
        rows, place = self._places(features, memory)
        place[...] = features
        if not is_usable(rows):
            require_usable(RESULT, features)
        return rows

    def expected(self, states: Num[np.ndarray, "n ..."], policy: StatePolicy, rng: np.random.Generator) -> DenseRows:
        """Expected features Σ_a π(a|s) x(s,a): exact for discrete actions, a mean of several draws for a sampler."""
        if isinstance(policy, SamplingPolicy):
            draws = policy.draws or self.draws
            total = np.asarray(sum(self.at(states, policy.sample(states, rng)).values for _ in range(draws)))
            return DenseRows(total / draws)
        return DenseRows(self.written_mean(states, policy.probabilities_at(states), RowMemory()))

    def written_mean(
        self, states: Num[np.ndarray, "n ..."], shares: Float[np.ndarray, "n A"], memory: RowMemory
    ) -> Float[np.ndarray, "n K"]:
        """Mean features Σ_a shares(s,a) x(s,a), in memory that somebody gives."""
        rows = place = total = np.empty(0)
        last = shares.shape[1] - 1
        for action, share in enumerate(np.ascontiguousarray(shares.T)):
            features = self._result(states, np.full(len(states), action))
            # Each product in memory of its own: the result may be the function's. What bad numbers give is found later.
            with np.errstate(all="ignore"):
                # Rows that lie one after the other are faster than those with the constant between them: only the last
                # sum is written there.
                if action == 0:
                    rows, place = self._places(features, memory)
                    kept = place if last == 0 else memory.spare(0, features.shape)
                    total = np.multiply(features, share[:, None], out=kept)
                else:
                    term = np.multiply(features, share[:, None], out=memory.spare(1, features.shape))
                    total = np.add(total, term, out=place if action == last else total)
        if self.intercept:
            rows[:, 0] = shares @ np.ones(shares.shape[1])
        if not is_usable(rows):
            for action in range(shares.shape[1]):  # the one to be refused is among these
                self.at(states, np.full(len(states), action))
        return rows

    def _places(self, features: np.ndarray, memory: RowMemory) -> tuple[np.ndarray, np.ndarray]:
        """Rows with the constant and with zeros after the features, and the features' own columns in them."""
        first, count = int(self.intercept), features.shape[1]
        rows = memory.rows(len(features), first + count + memory.after)
        rows[:, :first], rows[:, first + count :] = 1.0, 0.0
        return rows, rows[:, first : first + count]

    def _result(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """The function's result as floats; it may be the function's own memory."""
        features = as_floats(RESULT, self.function(states, actions), copy=False)
        if features.ndim != 2 or len(features) != len(states):
            raise InputError(
                f"The feature function returned shape {features.shape} for {len(states)} pairs; "
                "it must return (n, K), one row per pair."
            )
        return features
