"""`return_distribution`: what single episodes of the target would return, not only on average."""

from __future__ import annotations

import numpy as np

from gradientdice.data.transitions import Transitions
from gradientdice.effort import Effort, require_effort
from gradientdice.errors import InputError, require_choice, require_count, require_number, starts_missing
from gradientdice.estimators.behavior import behavior_notes, importance_ratios, ratio_cautions, require_behavior
from gradientdice.estimators.behavior_cloning import BehaviorCloning
from gradientdice.estimators.returns.doubly_robust import doubly_robust_function
from gradientdice.estimators.returns.episodes import EpisodeReturns
from gradientdice.estimators.returns.points import StepFunction, places, representative
from gradientdice.estimators.returns.table_paths import TablePaths, table_cells
from gradientdice.estimators.trajectory.step_weights import StepWeights
from gradientdice.evaluation.returns.result import ReturnDistribution
from gradientdice.inference.intervals import require_confidence
from gradientdice.policies import Policy
from gradientdice.problem.problem import Problem

NAME = "return_distribution"
# Paths from the starts of a table: the noise of the simulation is then below a hundredth.
SIMULATED = 20_000
# A model's paths that have not ended are a caution from this share on.
UNFINISHED = 0.01


def return_distribution(
    data: Transitions,
    policy: Policy,
    discount: float,
    *,
    source: str | None = None,
    method: str | None = None,
    horizon: int | None = None,
    behavior: BehaviorCloning | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    effort: Effort | str = Effort.NORMAL,
) -> ReturnDistribution:
    """The distribution of the target's return Σ_t γᵗ r_t over single episodes.

    It needs whole episodes and the behaviour's probabilities, and weights the episodes by them. Where a log has no
    such probabilities, the policy is simulated: in the log itself if it is a table, else in a learned model. That is
    marked in the result, which then has no band.

    Args:
        data: the log.
        policy: the target.
        discount: γ. At 1 the return is the undiscounted total until the episode ends; time limits are then refused.
            Below 1 what a time limit cut off is bounded, and the bound is part of the band.
        source: "episodes" or "model"; by default episodes where the log has probabilities (or `behavior` estimates
            them), else a model.
        method: of episodes: "weighted" (self-normalised importance sampling) or "doubly robust", which is for tables
            and the default there, unless a horizon is given.
        horizon: after how many steps a return is complete; by default it is the end of the episode.
        behavior: how to estimate the behaviour's probabilities where the log has none.
        confidence: of the band and of the intervals.
        seed: for bootstrap and simulation.
        effort: of a learned model.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("continuing"), np.tile([0.4, 0.6], (13, 1))
        >>> data = mdp.rollout(
        ...     np.full((13, 2), 0.5), episodes=500, horizon=10, rng=np.random.default_rng(0)
        ... )
        >>> found = gd.return_distribution(data, gd.TabularPolicy(target), 0.9, horizon=10)
        >>> found.source, bool(found.cvar(0.1) < found.quantile(0.1) < found.mean)
        ('episodes', True)
    """
    discount = require_number("discount", discount, low=0, high=1)
    require_confidence(confidence)
    require_behavior(behavior)
    if horizon is not None:
        require_count("horizon", horizon)
    if source is not None:
        require_choice("source", source, "episodes", "model")
    if method is not None:
        require_choice("method", method, "weighted", "doubly robust")
    problem = Problem(data, policy, seed=seed, effort=require_effort(effort))
    known = data.behavior_log_probs is not None or behavior is not None
    chosen = source or ("episodes" if known and data.episodes is not None else "model")
    if chosen == "model":
        if method is not None:
            raise InputError('method= is for weighted episodes: leave it out, or give source="episodes".')
        return _simulated(problem, discount, horizon, confidence)
    found = EpisodeReturns.of(NAME, data, discount, horizon)
    return _Weighted(problem, found, discount, horizon, behavior).distribution(method, confidence)


class _Weighted:
    """Weighted episodes, ready for either method."""

    def __init__(
        self,
        problem: Problem,
        found: EpisodeReturns,
        discount: float,
        horizon: int | None,
        behavior: BehaviorCloning | None,
    ) -> None:
        self._problem, self._found, self._discount, self._horizon = problem, found, discount, horizon
        data = problem.data
        ratios = importance_ratios(NAME, data, problem.policy, behavior)
        # What happens after the horizon is no part of the return, and its ratios have mean 1.
        self._ratios = np.where(found.episodes.step < (horizon or np.inf), ratios, 1.0)
        self._notes = (*behavior_notes(data, behavior), *ratio_cautions(data, ratios), *self._cut_notes())

    def distribution(self, method: str | None, confidence: float) -> ReturnDistribution:
        """The distribution by one of the methods."""
        problem, found = self._problem, self._found
        possible = problem.support is not None and self._horizon is None
        if method == "doubly robust" and not possible:
            raise InputError(
                'The doubly robust distribution is for tables, until the end of the episode: give method="weighted" '
                "for other states, or with a horizon."
            )
        robust = possible if method is None else method == "doubly robust"
        whole = self._steps(whole=True)
        weights = np.exp(whole.log_final - whole.log_total[-1])
        if robust:
            function = doubly_robust_function(problem, found, self._steps(whole=False))
        else:
            function = found.weighted(problem.data, weights)
        return ReturnDistribution(
            function,
            self._discount,
            self._horizon,
            confidence,
            "episodes",
            "doubly robust importance sampling" if robust else "self-normalised importance sampling",
            len(found.episodes),
            1 / float(weights @ weights),
            self._notes,
            problem.seed,
        )

    def _steps(self, whole: bool) -> StepWeights:
        return StepWeights.of(NAME, self._discount, self._found.episodes, self._ratios, normalised=True, whole=whole)

    def _cut_notes(self) -> tuple[str, ...]:
        if not self._found.cut:
            return ()
        apart = float((self._found.high - self._found.low).max())
        return (
            f"{self._found.cut} of {len(self._found.episodes)} episodes were cut by a time limit: their returns are "
            f"known up to {apart:.3g} at most",
        )


def _simulated(problem: Problem, discount: float, horizon: int | None, confidence: float) -> ReturnDistribution:
    """Simulated returns, in the log itself or in a learned model."""
    if discount == 1 and horizon is None and not problem.data.ended.any():
        raise InputError(
            f"{NAME}: at discount 1 a return is the total until the end, and no episode of the log ends; the average "
            "reward has no return distribution. Give a discount below 1, or horizon=…."
        )
    if problem.support is not None:
        returns, unfinished, notes, method = (
            *_table_returns(problem, discount, horizon),
            (),
            "paths through logged rows",
        )
    else:
        # JAX is imported when a model is learned, not with the package.
        from gradientdice.estimators.model.return_paths import model_returns

        found = model_returns(problem, discount, horizon, problem.effort)
        returns, unfinished, notes, method = found.returns, found.unfinished, found.notes, "learned dynamics"
    if discount == 1 and unfinished > UNFINISHED:
        notes = (*notes, f"{unfinished:.0%} of the paths had not ended when they were left: their totals are too short")
    weights = np.full(len(returns), 1 / len(returns))
    points = representative(returns, weights)
    cdf = np.cumsum(np.bincount(places(returns, points), weights, minlength=len(points)))
    return ReturnDistribution(
        StepFunction(points, cdf / cdf[-1]),
        discount,
        horizon,
        confidence,
        "model",
        method,
        len(returns),
        float(len(returns)),
        notes,
        problem.seed,
    )


def _table_returns(problem: Problem, discount: float, horizon: int | None) -> tuple[np.ndarray, float]:
    """Returns of paths from the log's initial states, and the share of paths that did not end."""
    cells, weights = table_cells(problem), problem.data.start_weights
    if cells.starts is None or weights is None:
        raise starts_missing(min(discount, 0.5))
    rng = np.random.default_rng(problem.seed)
    starts = rng.choice(cells.starts, size=SIMULATED, p=weights / weights.sum())
    returns, unfinished = TablePaths.of(problem, discount, horizon).returns(starts, rng)
    return returns, 0.0 if horizon is not None else unfinished
