"""Q of a learned model at every row of a log, each from networks that did not see the row's fold.

Networks learn the dynamics (`dynamics.py`), the policy is simulated in them (`simulation.py`), a value is fitted to the
simulated returns (`returns.py`), and one step of the dynamics gives Q and V from it (`backup.py`). Nothing in Q is the
outcome of a single simulation, so that in deterministic dynamics r + γV' − Q is as small as the model is good.

References:
    Zhang, Paine, Nachum, Paduraru, Tucker, Wang and Norouzi, Autoregressive Dynamics Models for Offline Policy
    Evaluation and Optimization, ICLR 2021, for evaluation by simulation. Here the dynamics are predicted all at once,
    and a fitted value takes the place of long paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradientdice.data.transitions import Transitions
from gradientdice.effort import Effort
from gradientdice.errors import starts_missing
from gradientdice.estimators.model.dynamics import learn_dynamics
from gradientdice.estimators.model.encoding import Encoding
from gradientdice.estimators.model.fitted_value import FittedValues, fit_values
from gradientdice.estimators.model.needs import require_simulated
from gradientdice.estimators.model.returns import ReturnSamples, truncated_returns
from gradientdice.estimators.model.row_paths import row_values
from gradientdice.estimators.model.settings import SETTINGS
from gradientdice.estimators.model.simulation import Paths, simulate
from gradientdice.estimators.model.starts import Starts
from gradientdice.problem.folds import Folds
from gradientdice.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class HeldOutQ:
    """A model's Q for one discount, each row from networks that did not see its fold.

    Attributes:
        q: Q(s, a) at the logged pairs.
        next_value: V(s') = E_π Q(s', ·) of the same Q; after an end 0 or, at discount 1, the mean of V over the initial
            states.
        initial_value: V at the initial states; None if the log has none.
    """

    q: Float[np.ndarray, " n"]
    next_value: Float[np.ndarray, " n"]
    initial_value: Float[np.ndarray, " n0"] | None


@dataclass(frozen=True, eq=False)
class ModelValues:
    """What a learned model says of a log, for several discounts.

    Attributes:
        by_discount: Q and V at the log's rows.
        values: the policy's value in the model, the mean over all networks.
        spreads: the standard deviation of that value over the networks.
        left_share: the share of simulated steps that would have left the log's range.
        error_share: the share of the variance of changes and rewards that the networks do not predict.
    """

    by_discount: list[HeldOutQ]
    values: list[float]
    spreads: list[float]
    left_share: float
    error_share: float

    def notes(self, number: int) -> tuple[str, ...]:
        """What the reader should know of the value at one of the discounts."""
        return (
            f"the learned dynamics leave {self.error_share:.2%} of the variance of changes and rewards unexplained on "
            "held-out rows",
            f"the networks' own values differ by {self.spreads[number]:.3g} (standard deviation)",
            f"{self.left_share:.2%} of the simulated steps would have left the log's range, and were kept in it",
        )


def simulated_values(problem: Problem, discounts: Sequence[float], folds: Folds, effort: Effort) -> ModelValues:
    """Learns a model without each fold, simulates the policy in it, and scores the fold's rows.

    Args:
        problem: the log and the policy, which must answer for any state.
        discounts: γ of each Q; they share the model and the simulation.
        folds: which rows the networks that score a row may not have seen.
        effort: how large the networks are and how long they are trained.

    Raises:
        InputError: if the states are a table, if the policy is known at the log's states only, or if initial states
            are needed and not known.
    """
    policy = require_simulated(problem)
    data, settings = problem.data, SETTINGS[effort]
    if data.start_states is None and (data.ended.any() or min(discounts) < 1):
        raise starts_missing(min(discounts))
    encoding = Encoding.of(data, policy)
    dynamics = learn_dynamics(problem, encoding, folds, settings)
    starts = Starts.draw(data, encoding, folds, settings, problem.seed)
    paths = simulate(dynamics, policy, starts, problem.seed)
    samples = ReturnSamples.of(paths, folds.count, discounts)
    fitted = fit_values(samples, encoding, discounts, settings, problem.seed)
    restarts = starts.restarts[:: settings.members]
    found = row_values(dynamics, fitted, policy, data, folds, discounts, restarts, problem.seed)
    q, next_value, initial = found.q, found.next_value, found.initial_value
    next_value[data.ended] = _after_ends(data, initial, discounts)
    networks = [_own_values(paths, fitted, discounts, number, starts.long) for number in range(len(discounts))]
    return ModelValues(
        [
            HeldOutQ(q[:, number], next_value[:, number], None if initial is None else initial[:, number])
            for number in range(len(discounts))
        ],
        [float(values.mean()) for values in networks],
        [float(values.std(ddof=1)) if len(values) > 1 else 0.0 for values in networks],
        paths.left_share,
        dynamics.error_share,
    )


def _own_values(
    paths: Paths, fitted: FittedValues, discounts: Sequence[float], number: int, long: int
) -> Float[np.ndarray, " j"]:
    """The policy's value in each network: its mean return from initial states or, at discount 1, its mean reward.

    Both are of the long paths, and the mean reward of their second half, by when they are near where the policy stays.
    """
    if discounts[number] == 1:
        return paths.rewards[len(paths.rewards) // 2 :, :, :long].mean(axis=(0, 2), dtype=np.float64)
    totals, factors = truncated_returns(paths, discounts[number])
    # Long paths are cut after the last step alone.
    continued = totals[0] + factors[0] * fitted.at(paths.reached[-1])[..., number]
    return (1 - discounts[number]) * continued[:, :long].mean(axis=1)


def _after_ends(
    data: Transitions, initial: Float[np.ndarray, "n0 g"] | None, discounts: Sequence[float]
) -> Float[np.ndarray, " g"]:
    """What follows an end: nothing or, at discount 1, an initial state."""
    if initial is None or data.start_weights is None:
        return np.zeros(len(discounts))
    mean = np.average(initial, axis=0, weights=data.start_weights)
    return np.where(np.asarray(discounts) == 1, mean, 0.0)
