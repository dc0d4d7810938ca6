"""A model's Q at the log's pairs and V at its states, each row from the networks that did not see its fold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Num

from gradientdice.estimators.model.backup import FoldQ
from gradientdice.estimators.model.encoding import Encoding
from gradientdice.policies import SamplingPolicy, StatePolicy

# States handed to the policy at once.
POLICY_ROWS = 65_536


@dataclass(frozen=True, eq=False)
class Scores:
    """Q of all folds.

    Attributes:
        by_fold: the Q of each.
        encoding: of states and actions.
        policy: whose V is asked for.
        draws: of actions in each state, from a policy that can only be sampled.
        rng: for these.
    """

    by_fold: list[FoldQ]
    encoding: Encoding
    policy: StatePolicy
    draws: int
    rng: np.random.Generator

    def pairs(self, inputs: Float[np.ndarray, "n d"], folds: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n g"]:
        """Q at encoded pairs."""
        found = np.zeros((len(inputs), len(self.by_fold[0].fold.discounts)))
        for number, own in enumerate(self.by_fold):
            rows = np.flatnonzero(folds == number)
            found[rows] = own.pairs(inputs[rows])
        return found

    def expected(self, states: Num[np.ndarray, "n ..."], folds: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n g"]:
        """V(s) = E_π Q(s, ·)."""
        parts = [
            self._expected(states[start : start + POLICY_ROWS], folds[start : start + POLICY_ROWS])
            for start in range(0, len(states), POLICY_ROWS)
        ]
        return np.concatenate(parts)

    def _expected(self, states: np.ndarray, folds: np.ndarray) -> np.ndarray:
        encoded = self.encoding.states(states)
        if isinstance(self.policy, SamplingPolicy):
            draws = self.policy.draws or self.draws
            actions = (self.encoding.actions(self.policy.sample(states, self.rng)) for _ in range(draws))
            return sum(self.pairs(np.concatenate([encoded, action], axis=1), folds) for action in actions) / draws  # pyright: ignore[reportReturnType]
        probabilities = self.policy.probabilities_at(states)
        total = np.zeros((len(states), len(self.by_fold[0].fold.discounts)))
        for action in range(probabilities.shape[1]):
            taken = np.flatnonzero(probabilities[:, action])
            chosen = self.encoding.actions(np.full(len(taken), action))
            found = self.pairs(np.concatenate([encoded[taken], chosen], axis=1), folds[taken])
            total[taken] += probabilities[taken, action, None] * found
        return total
