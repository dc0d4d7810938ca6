"""Features that the user supplies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Num

from gradientdice.arrays import as_floats, is_usable, require_usable
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
        """What to say of the first of `count` features that the policy reaches and the log does not."""
        return (
            f"Feature {feature} is 0 in every logged row but not where the policy goes ({count} such features). "
            "Log more data, or leave the feature out."
        )

    def at(self, states: Num[np.ndarray, "n ..."], actions: Num[np.ndarray, "n ..."]) -> DenseRows:
        """x(s,a)."""
        # With an intercept the features are copied beside it, and need no copy of their own.
        features = self._result(states, actions, copy=not self.intercept)
        require_usable(RESULT, features)
        return DenseRows(_beside_one(features) if self.intercept else features)

    def expected(self, states: Num[np.ndarray, "n ..."], policy: StatePolicy, rng: np.random.Generator) -> DenseRows:
        """Σ_a π(a|s) x(s,a): exact for discrete actions, a mean of several draws for a sampler."""
        if isinstance(policy, SamplingPolicy):
            draws = policy.draws or self.draws
            total = np.asarray(sum(self.at(states, policy.sample(states, rng)).values for _ in range(draws)))
            return DenseRows(total / draws)
        probabilities = policy.probabilities_at(states)
        total = self._mean_features(states, probabilities)
        if not is_usable(total):
            for action in range(policy.num_actions):  # the one to be refused is among these
                self.at(states, np.full(len(states), action))
        return DenseRows(_beside_one(total, probabilities @ np.ones(policy.num_actions)) if self.intercept else total)

    def _mean_features(self, states: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
        """Σ_a π(a|s) of the function's results; not finite where one of them is not."""
        total = term = None
        for action, share in enumerate(np.ascontiguousarray(probabilities.T)):
            features = self._result(states, np.full(len(states), action))
            # Each product in memory of its own: the result may be the function's. What bad numbers give is found later.
            with np.errstate(all="ignore"):
                if total is None:
                    total = features * share[:, None]
                else:
                    term = np.multiply(features, share[:, None], out=term)
                    total += term
        assert total is not None
        return total

    def _result(self, states: np.ndarray, actions: np.ndarray, *, copy: bool = False) -> np.ndarray:
        """What the function returns, as floats; without a copy it may be the function's own memory."""
        features = as_floats(RESULT, self.function(states, actions), copy=copy)
        if features.ndim != 2 or len(features) != len(states):
            raise InputError(
                f"The feature function returned shape {features.shape} for {len(states)} pairs; "
                "it must return (n, K), one row per pair."
            )
        return features


def _beside_one(features: np.ndarray, one: np.ndarray | float = 1.0) -> np.ndarray:
    """The features with a constant one before them."""
    rows = np.empty((len(features), features.shape[1] + 1))
    rows[:, 0], rows[:, 1:] = one, features
    return rows
