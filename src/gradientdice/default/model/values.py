"""Q of a learned model at every row of a log, each from networks that did not see the row's fold.

Networks learn the dynamics (`learning.py`), the policy is simulated in them (`simulation.py`), a value is fitted to the
simulated returns (`returns.py`), and paths from every row that it continues give Q and V (`row_paths.py`).

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

from gradientdice.base.compiling import on_processor
from gradientdice.base.effort import Effort
from gradientdice.base.errors import starts_missing
from gradientdice.base.process import give_back_freed_memory
from gradientdice.default.kept import Kept
from gradientdice.default.model.dynamics import Dynamics
from gradientdice.default.model.encoding import Encoding
from gradientdice.default.model.fitted_value import FittedValues, fit_values
from gradientdice.default.model.learning import learn_dynamics
from gradientdice.default.model.needs import require_simulated
from gradientdice.default.model.returns import ReturnSamples, average_rewards, lasting_share, truncated_returns
from gradientdice.default.model.row_paths import Continuation, RowValues, row_values
from gradientdice.default.model.settings import SETTINGS
from gradientdice.default.model.simulation import Paths, simulate
from gradientdice.default.model.starts import Starts
from gradientdice.log.transitions import Transitions
from gradientdice.problem.folds import Folds
from gradientdice.problem.problem import Problem
from gradientdice.statistics.influence import HeldOutQ


@dataclass(frozen=True, eq=False)
class ModelValues:
    """What a learned model says of a log, for several discounts.

    Attributes:
        by_discount: Q and V at the log's rows, for several lengths of simulated paths.
        values: the policy's value in the model, the mean over all networks.
        spreads: the standard deviation of that value over the networks.
        left_share: the share of simulated steps that would have left the log's range.
        error_share: the share of the variance of changes and rewards that the networks do not predict.
        lasting: for each discount the share of the policy's time, discounted, that is before an end; 1 at discount 1,
            where ended episodes start again.
    """

    by_discount: list[list[HeldOutQ]]
    values: list[float]
    spreads: list[float]
    left_share: float
    error_share: float
    lasting: list[float]

    def notes(self, number: int) -> tuple[str, ...]:
        """What the reader should know of the value at one of the discounts."""
        return (
            f"the learned dynamics leave {self.error_share:.2%} of the variance of changes and rewards unexplained on "
            "held-out rows",
            f"the networks' own values differ by {self.spreads[number]:.3g} (standard deviation)",
            f"{self.left_share:.2%} of the simulated steps would have left the log's range, and were kept in it",
        )


def simulated_values(
    problem: Problem, discounts: Sequence[float], folds: Folds, effort: Effort, kept: Kept | None = None
) -> ModelValues:
    """Learns a model without each fold, simulates the policy in it, and scores the fold's rows.

    Args:
        problem: the log and the policy, which must answer for any state.
        discounts: γ of each Q; they share the model and the simulation.
        folds: which rows the networks that score a row may not have seen.
        effort: how large the networks are and how long they are trained.
        kept: where learned dynamics are kept for others; None for nobody else.

    Raises:
        InputError: if the states are a table, if the policy is known at the log's states only, or if initial states
            are needed and not known.
    """
    policy = require_simulated(problem)
    data, settings = problem.data, SETTINGS[effort]
    if data.start_states is None and (data.ended.any() or min(discounts) < 1):
        raise starts_missing(min(discounts))
    dynamics = (kept or Kept()).dynamics(problem, folds, effort)
    encoding, settings = dynamics.encoding, settings.shared_by(problem.sharers)
    starts = Starts.draw(data, encoding, folds, settings, problem.seed)
    # Many small steps with a call of the policy between them: for a GPU that is waiting, unless they are one program.
    with on_processor(not policy.jax):
        paths = simulate(dynamics, policy, starts, problem.seed)
        samples = ReturnSamples.of(paths, folds.count, discounts)
        fitted = fit_values(samples, encoding, discounts, settings, problem.seed)
        del samples
        give_back_freed_memory()
        networks = [_own_values(paths, fitted, discounts, number, starts.long) for number in range(len(discounts))]
        values = [float(own.mean()) for own in networks]
        continuation = Continuation.of(fitted, discounts, values, starts.restarts[:: settings.members])
        found = row_values(dynamics, continuation, policy, problem, folds, settings.lengths_for(len(data)))
    return ModelValues(
        [[_held_out(data, rows, number, discount) for rows in found] for number, discount in enumerate(discounts)],
        values,
        [float(own.std(ddof=1)) if len(own) > 1 else 0.0 for own in networks],
        paths.left_share,
        dynamics.error_share,
        [lasting_share(paths, discount, starts.long) for discount in discounts],
    )


def learned_dynamics(problem: Problem, folds: Folds, effort: Effort) -> Dynamics:
    """Networks of the dynamics for each fold, which did not see it."""
    return learn_dynamics(problem, Encoding.of(problem.data, problem.policy), folds, SETTINGS[effort])


def _held_out(data: Transitions, found: RowValues, number: int, discount: float) -> HeldOutQ:
    """One discount's Q; at discount 1 an initial state follows an end."""
    following = found.next_value[:, number]
    initial = None if found.initial_value is None else found.initial_value[:, number]
    if discount == 1 and initial is not None:
        following = np.where(data.ended, np.average(initial, weights=data.start_weights), following)
    return HeldOutQ(found.q[:, number], following, initial)


def _own_values(
    paths: Paths, fitted: FittedValues, discounts: Sequence[float], number: int, long: int
) -> Float[np.ndarray, " j"]:
    """The policy's value in each network, of the long paths: its mean return or, at discount 1, its mean reward."""
    if discounts[number] == 1:
        return average_rewards(paths, long)
    totals, factors = truncated_returns(paths, discounts[number])
    # Long paths are cut after the last step alone.
    continued = totals[0] + factors[0] * fitted.at(paths.reached[-1])[..., number]
    return (1 - discounts[number]) * continued[:, :long].mean(axis=1)
