"""Features that the user supplies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Num

from gradientdice.arrays import as_floats, require_usable
from gradientdice.errors import InputError, require_callable, require_count, require_flag
from gradientdice.functions.rows import DenseRows
from gradientdice.policies import SamplingPolicy, StatePolicy

RANK_TOLERANCE = 1e-10
RESULT = "The feature function's result"


@dataclass(frozen=True, eq=False)
class LinearFeatures:
    """τ and f as linear functions of x(s,a).

    Attributes:
        function: (states (n, …), actions (n, …)) -> (n, K) features.
        intercept: whether to add a constant feature. With one in the span, GradientDICE does not depend on
            its norm_penalty at a discount below 1 and equals LSTDQ; without one the penalty matters.
        draws: how many actions to draw in each state from a policy that can only be sampled.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> features = gd.LinearFeatures(lambda states, actions: np.column_stack([states, actions]))
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
        """What to say of the first of `count` features that the policy reaches and the log does not."""
        return (
            f"Feature {feature} is 0 in every logged row but not where the policy goes ({count} such features). "
            "Log more data, or leave the feature out."
        )

    def at(self, states: Num[np.ndarray, "n ..."], actions: Num[np.ndarray, "n ..."]) -> DenseRows:
        """x(s,a)."""
        # With an intercept the features are copied beside it, and need no copy of their own.
        features = as_floats(RESULT, self.function(states, actions), copy=not self.intercept)
        if features.ndim != 2 or len(features) != len(states):
            raise InputError(
                f"The feature function returned shape {features.shape} for {len(states)} pairs; "
                "it must return (n, K), one row per pair."
            )
        require_usable(RESULT, features)
        if not self.intercept:
            return DenseRows(features)
        rows = np.empty((len(features), features.shape[1] + 1))
        rows[:, 0], rows[:, 1:] = 1.0, features
        return DenseRows(rows)

    def expected(self, states: Num[np.ndarray, "n ..."], policy: StatePolicy, rng: np.random.Generator) -> DenseRows:
        """Σ_a π(a|s) x(s,a): exact for discrete actions, a mean of several draws for a sampler."""
        if isinstance(policy, SamplingPolicy):
            draws = policy.draws or self.draws
            total = np.asarray(sum(self.at(states, policy.sample(states, rng)).values for _ in range(draws)))
            return DenseRows(total / draws)
        probabilities = policy.probabilities_at(states)
        weighted = (
            _scaled(self.at(states, np.full(len(states), action)).values, probabilities[:, action], own=self.intercept)
            for action in range(policy.num_actions)
        )
        total = next(weighted)
        for part in weighted:
            total += part
        return DenseRows(total)


def _scaled(values: np.ndarray, factors: np.ndarray, *, own: bool) -> np.ndarray:
    """Rows times factors, in place where the rows are our own; as they are where all factors are 1."""
    if (factors == 1).all():
        return values if own else np.array(values)
    return np.multiply(values, factors[:, None], out=values if own else None)
