"""Returns of the policy in learned dynamics: what a simulation says where no weighted episodes can."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from gradientdice.base.effort import Effort
from gradientdice.base.errors import starts_missing
from gradientdice.default.kept import Kept
from gradientdice.default.model.needs import require_simulated
from gradientdice.default.model.settings import SETTINGS
from gradientdice.default.model.simulation import simulate
from gradientdice.default.model.starts import Starts
from gradientdice.problem.folds import Folds
from gradientdice.problem.problem import Problem

# What follows is left out once it counts less than this; longer paths than so many steps are not simulated.
NEGLIGIBLE, LONGEST = 1e-3, 1000


@dataclass(frozen=True, eq=False)
class SimulatedReturns:
    """Returns of simulated paths.

    Attributes:
        returns: (p,) of all networks.
        spread: the standard deviation of the networks' mean returns.
        unfinished: the share of paths that had not ended when they were left.
        steps: after how many steps they were left.
        notes: what the reader should know of the model.
    """

    returns: Float[np.ndarray, " p"]
    spread: float
    unfinished: float
    steps: int
    notes: tuple[str, ...]


def model_returns(
    problem: Problem, discount: float, horizon: int | None, effort: Effort, folds: Folds, kept: Kept
) -> SimulatedReturns:
    """Learns a model, simulates the policy from initial states, and sums what it earns.

    Args:
        problem: the log and the policy, which must answer for any state.
        discount: γ.
        horizon: after how many steps a return is complete; None is the end of the path.
        effort: how large the networks are and how long they learn.
        folds: whose networks did not see them.
        kept: where the dynamics are; those of the default estimator's own folds are shared with its answer.
    """
    policy, data = require_simulated(problem), problem.data
    if data.start_states is None:
        raise starts_missing(discount if discount < 1 else 0.0)
    settings = replace(SETTINGS[effort], horizon=horizon or _horizon(problem, discount))
    dynamics = kept.dynamics(problem, folds, effort)
    encoding = dynamics.encoding
    starts = Starts.draw(data, encoding, folds, settings, problem.seed)
    paths = simulate(dynamics, policy, starts, problem.seed)
    long = slice(0, starts.long)
    ended = paths.ended[:, :, long]
    alive = np.concatenate([np.ones_like(ended[:1]), ~np.logical_or.accumulate(ended, axis=0)[:-1]])
    factors = discount ** np.arange(settings.horizon, dtype=np.float64)
    returns = np.einsum("h,hjp->jp", factors, np.where(alive, paths.rewards[:, :, long], 0.0))
    means = returns.mean(axis=1)
    return SimulatedReturns(
        returns.ravel(),
        float(means.std(ddof=1)) if len(means) > 1 else 0.0,
        0.0 if horizon is not None else float((alive[-1] & ~ended[-1]).mean()),
        settings.horizon,
        (
            f"the learned dynamics leave {dynamics.error_share:.2%} of the variance of changes and rewards unexplained "
            "on held-out rows",
            f"the networks' mean returns differ by {float(means.std(ddof=0)):.3g} (standard deviation)",
            "rewards are the learned means: their noise is not part of the distribution",
        ),
    )


def _horizon(problem: Problem, discount: float) -> int:
    """How many steps matter; at discount 1 twice as many as the longest logged episode has."""
    if discount == 0:
        return 1
    if discount < 1:
        return int(np.clip(np.ceil(np.log(NEGLIGIBLE) / np.log(discount)), 1, LONGEST))
    episodes = problem.data.episodes
    longest = LONGEST if episodes is None else 2 * int(np.unique(episodes, return_counts=True)[1].max())
    return min(longest, LONGEST)
