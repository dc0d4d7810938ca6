"""Behaviour cloning: the probability that the log itself gives to its actions,

    table:    μ̂(a|s) = (n(s,a) + α) / (n(s) + αA),
    vectors:  μ̂(a|s) ∝ exp(φ(s)ᵀθ_a),  θ = argmin  −E[log μ̂(a|s)] + ½ξ Σ_a ‖θ_a‖²  (the constant is not penalised),

with pseudo-counts α, kernel features φ and a ridge ξ. It is used where a log has no probabilities.
Dividing by estimated rather than true probabilities does not add noise, it takes some away, as long as the model can
express μ; where several policies made the log, it estimates their mixture at each state.

References:
    Hanna, Niekum and Stone, Importance Sampling Policy Evaluation with an Estimated Behavior Policy, ICML 2019.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize
from scipy.special import logsumexp

from gradientdice.base.errors import InputError, require_number
from gradientdice.functions.kernel import FittedKernel, RandomFourier, as_inputs
from gradientdice.log.transitions import Transitions
from gradientdice.policies import DiscretePolicy, TabularPolicy

# The features of so many rows are held at once, and no more rows are fitted to: logistic regression with some hundred
# parameters gains nothing that importance sampling would notice from more.
MOST_ROWS = 65_536


@dataclass(frozen=True)
class BehaviorCloning:
    """Estimates log μ(a|s) of the logged actions, which must be discrete.

    Attributes:
        smoothing: α, added to the count of each action in each state of a table.
        features: φ, for states that are not whole numbers.
        ridge: ξ, for states that are not whole numbers.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> log = gd.Transitions(
        ...     [0, 0, 0, 1],
        ...     actions=[0, 0, 1, 1],
        ...     rewards=np.zeros(4),
        ...     next_states=[0, 0, 1, 0],
        ... )
        >>> policy = gd.TabularPolicy(np.full((2, 2), 0.5))
        >>> np.exp(gd.BehaviorCloning().log_probabilities(log, policy)).round(4)
        array([0.6667, 0.6667, 0.3333, 1.    ])
    """

    smoothing: float = 0.0
    features: RandomFourier = RandomFourier(100)
    ridge: float = 1e-4

    def __post_init__(self) -> None:
        require_number("smoothing", self.smoothing, low=0)
        require_number("ridge", self.ridge, low=0, open_low=True)
        if not isinstance(self.features, RandomFourier):
            raise InputError(f"features must be RandomFourier(…), not {self.features!r:.60}.")

    def log_probabilities(self, data: Transitions, policy: TabularPolicy | DiscretePolicy) -> Float[np.ndarray, " n"]:
        """The logarithm of μ̂(a|s) of each row's action.

        Args:
            data: the log, with discrete actions.
            policy: the policy to evaluate: it says how many actions there are.
        """
        if data.actions.ndim != 1 or data.actions.dtype.kind not in "iu":
            raise InputError(
                "BehaviorCloning is for discrete actions: give behavior_log_probs where actions are continuous."
            )
        if data.states.ndim == 1 and data.states.dtype.kind in "iu":
            return self._counted(data, policy.num_actions)
        return self._fitted(data, policy)

    def _counted(self, data: Transitions, num_actions: int) -> np.ndarray:
        weights = data.row_weights
        _, state = np.unique(data.states, return_inverse=True)
        pair = state * num_actions + data.actions
        of_pair = np.bincount(pair, weights)[pair] + self.smoothing
        of_state = np.bincount(state, weights)[state] + self.smoothing * num_actions
        # Only rows that count 0 times have a count of 0; what they are given does not matter.
        return np.log(np.divide(of_pair, of_state, out=np.full(len(data), 1 / num_actions), where=of_pair > 0))

    def _fitted(self, data: Transitions, policy: TabularPolicy | DiscretePolicy) -> np.ndarray:
        kernel, num_actions = self.features.fitted(data, policy), policy.num_actions
        chosen = np.arange(len(data))
        if len(data) > MOST_ROWS:
            chosen = np.sort(np.random.default_rng(self.features.seed).permutation(len(data))[:MOST_ROWS])
        weights = data.row_weights[chosen]
        theta = _regression(
            _inputs(kernel, data.states[chosen]), data.actions[chosen], weights, num_actions, self.ridge
        )
        logs = np.empty(len(data))
        for start in range(0, len(data), MOST_ROWS):
            rows = slice(start, start + MOST_ROWS)
            scores = _inputs(kernel, data.states[rows]) @ theta
            own = np.take_along_axis(scores, data.actions[rows, None].astype(np.int64), axis=1)[:, 0]
            logs[rows] = own - logsumexp(scores, axis=1)
        return logs


def _inputs(kernel: FittedKernel, states: np.ndarray) -> np.ndarray:
    return kernel.features((as_inputs(states, None) - kernel.center) / kernel.scale)


def _regression(x: np.ndarray, actions: np.ndarray, weights: np.ndarray, num_actions: int, ridge: float) -> np.ndarray:
    """θ, (features, actions), of the penalised multinomial logistic regression."""
    share = weights / weights.sum()
    taken = np.eye(num_actions)[actions]
    penalty = np.full((x.shape[1], 1), ridge)
    penalty[0] = 0.0

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        theta = flat.reshape(x.shape[1], num_actions)
        scores = x @ theta
        total = np.asarray(logsumexp(scores, axis=1))
        value = share @ (total - np.sum(scores * taken, axis=1)) + 0.5 * np.sum(penalty * theta**2)
        excess = share[:, None] * (np.exp(scores - total[:, None]) - taken)
        return float(value), (x.T @ excess + penalty * theta).ravel()

    start = np.zeros(x.shape[1] * num_actions)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500, "gtol": 1e-8})
    if not np.isfinite(found.x).all():
        raise InputError("BehaviorCloning found no fit to the log's actions: give behavior_log_probs.")
    return found.x.reshape(x.shape[1], num_actions)
