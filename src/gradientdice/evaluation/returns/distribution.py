"""`return_distribution`: what single episodes of the target would return, not only on average."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from gradientdice.base.effort import Effort, require_effort
from gradientdice.base.errors import InputError, require_choice, require_count, require_number, starts_missing
from gradientdice.default.kept import Kept
from gradientdice.default.search import MODEL_FOLDS, Searching
from gradientdice.estimators.behavior import behavior_notes, importance_ratios, ratio_cautions, require_behavior
from gradientdice.estimators.behavior_cloning import BehaviorCloning
from gradientdice.estimators.doubly_robust.cross_fit import FOLDS
from gradientdice.estimators.returns.doubly_robust import doubly_robust_function
from gradientdice.estimators.returns.episodes import EpisodeReturns, UnknownTotals
from gradientdice.estimators.returns.points import StepFunction, places, representative
from gradientdice.estimators.returns.table_paths import TablePaths, table_cells
from gradientdice.estimators.trajectory.step_weights import StepWeights
from gradientdice.evaluation.returns.result import ReturnDistribution
from gradientdice.evaluation.returns.trust import FEWEST, Simulated, simulated_evidence, weighted_checks
from gradientdice.log.transitions import Transitions
from gradientdice.policies import Policy
from gradientdice.problem.problem import Problem
from gradientdice.statistics.intervals import require_confidence

NAME = "return_distribution"
# Paths from the starts of a table: the noise of the simulation is then below a hundredth.
SIMULATED = 20_000


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

    With whole episodes and the behaviour's probabilities it weights the episodes by them. Where a log has no such
    probabilities, or the weighted episodes would be worth fewer than 30 of the policy itself, the policy is simulated:
    in the log itself if it is a table, else in a learned model. That is marked in the result, which then has no band.
    Its verdict says whether to believe it.

    Args:
        data: the log.
        policy: the target.
        discount: γ. At 1 the return is the undiscounted total until the episode ends; time limits are then refused.
            Below 1 what a time limit cut off is bounded, and the bound is part of the band.
        source: "episodes" or "model"; by default episodes where the log has probabilities (or `behavior` estimates
            them), the weighted episodes are worth at least 30 of the policy itself, and (at discount 1) none was cut;
            else a model. A note of the result says which was chosen, and why.
        method: of episodes, which it chooses: "weighted" (self-normalised importance sampling) or "doubly robust",
            which is for tables and the default there, unless a horizon is given.
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
    # The verdict rests on the same networks as the paths.
    search = Searching(discount, Kept(always=True))
    problem = Problem(data, policy, seed=seed, search=search, effort=require_effort(effort))
    known = data.behavior_log_probs is not None or behavior is not None
    lacking = "episodes" if known else "probabilities of the behaviour"
    possible = known and data.episodes is not None
    if source == "model" or (source is None and not possible):
        if method is not None:
            raise InputError('method= is for weighted episodes: leave it out, or give source="episodes".')
        why = () if source else (f"simulated in a model: the log has no {lacking}, which weighted episodes need",)
        return _simulated(problem, discount, horizon, confidence, why)
    weighted = _Weighted(problem, discount, horizon, behavior)
    if source is not None or method is not None:
        return weighted.distribution(method, confidence)
    return _chosen(weighted, lambda why: _simulated(problem, discount, horizon, confidence, (why,)), confidence)


def _chosen(
    weighted: _Weighted, simulated: Callable[[str], ReturnDistribution], confidence: float
) -> ReturnDistribution:
    """Weighted episodes if these are worth enough episodes of the policy itself, else simulated paths.

    Where no model can be simulated, the episodes are weighted all the same, or refused as they were.
    """
    try:
        effective = weighted.effective
    except UnknownTotals as unknown:
        try:
            return simulated("simulated in a model: time limits cut episodes, whose totals are not known")
        except InputError:
            raise unknown from None
    worth = f"the weighted episodes {{}} worth {effective:.3g} episodes of the policy itself, and {FEWEST:g} are needed"
    if effective >= FEWEST:
        return weighted.distribution(None, confidence, (worth.format("are"),))
    try:
        return simulated(f"simulated in a model: {worth.format('would be')}")
    except InputError as refused:
        return weighted.distribution(None, confidence, (f"{worth.format('are')}, but: {refused}",))


class _Weighted:
    """Weighted episodes, ready for either method."""

    def __init__(
        self, problem: Problem, discount: float, horizon: int | None, behavior: BehaviorCloning | None
    ) -> None:
        self._problem, self._discount, self._horizon, self._behavior = problem, discount, horizon, behavior

    @cached_property
    def _found(self) -> EpisodeReturns:
        return EpisodeReturns.of(NAME, self._problem.data, self._discount, self._horizon)

    @cached_property
    def _all_ratios(self) -> np.ndarray:
        return importance_ratios(NAME, self._problem.data, self._problem.policy, self._behavior)

    @cached_property
    def _ratios(self) -> np.ndarray:
        # What happens after the horizon is no part of the return, and its ratios have mean 1.
        return np.where(self._found.episodes.step < (self._horizon or np.inf), self._all_ratios, 1.0)

    @property
    def effective(self) -> float:
        """How many episodes of the policy itself have a mean of the same noise; 0 where all weights are."""
        episodes = self._found.episodes
        with np.errstate(divide="ignore"):
            final = episodes.log_products(self._ratios)[episodes.last] + np.log(episodes.weights)
        total = np.logaddexp.reduce(final)
        return 0.0 if np.isneginf(total) else float(1 / np.square(np.exp(final - total)).sum())

    def distribution(self, method: str | None, confidence: float, why: tuple[str, ...] = ()) -> ReturnDistribution:
        """The distribution by one of the methods; `why` is a note on why the episodes were weighted."""
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
        effective = 1 / float(weights @ weights)
        return ReturnDistribution(
            function,
            self._discount,
            self._horizon,
            confidence,
            "episodes",
            "doubly robust importance sampling" if robust else "self-normalised importance sampling",
            len(found.episodes),
            effective,
            (*why, *behavior_notes(problem.data, self._behavior), *self._cut_notes()),
            problem.seed,
            weighted_checks(problem, function, effective, robust),
            ratio_cautions(problem.data, self._all_ratios),
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


def _simulated(
    problem: Problem, discount: float, horizon: int | None, confidence: float, why: tuple[str, ...] = ()
) -> ReturnDistribution:
    """Simulated returns, in the log itself or in a learned model; `why` is a note on why they were chosen."""
    if discount == 1 and horizon is None and not problem.data.ended.any():
        raise InputError(
            f"{NAME}: at discount 1 a return is the total until the end, and no episode of the log ends; the average "
            "reward has no return distribution. Give a discount below 1, or horizon=…."
        )
    found = (_in_the_log if problem.support is not None else _in_a_model)(problem, discount, horizon)
    returns = found.returns
    weights = np.full(len(returns), 1 / len(returns))
    points = representative(returns, weights)
    cdf = np.cumsum(np.bincount(places(returns, points), weights, minlength=len(points)))
    return ReturnDistribution(
        StepFunction(points, cdf / cdf[-1]),
        discount,
        horizon,
        confidence,
        "model",
        found.method,
        len(returns),
        float(len(returns)),
        (*why, *found.notes),
        problem.seed,
        *simulated_evidence(problem, discount, horizon, confidence, found),
    )


def _in_a_model(problem: Problem, discount: float, horizon: int | None) -> Simulated:
    """Returns of paths in the learned dynamics that the default estimator's answer rests on."""
    # JAX is imported when a model is learned, not with the package.
    from gradientdice.default.model.return_paths import model_returns

    folds = problem.folds(FOLDS).coarser(MODEL_FOLDS)
    assert isinstance(problem.search, Searching)
    found = model_returns(problem, discount, horizon, problem.effort, folds, problem.search.kept)
    return Simulated(found.returns, found.unfinished, found.steps, "learned dynamics", found.notes)


def _in_the_log(problem: Problem, discount: float, horizon: int | None) -> Simulated:
    """Returns of paths through a table's logged rows, from its initial states."""
    cells, weights = table_cells(problem), problem.data.start_weights
    if cells.starts is None or weights is None:
        raise starts_missing(min(discount, 0.5))
    rng = np.random.default_rng(problem.seed)
    starts = rng.choice(cells.starts, size=SIMULATED, p=weights / weights.sum())
    paths = TablePaths.of(problem, discount, horizon)
    returns, unfinished = paths.returns(starts, rng)
    unfinished = 0.0 if horizon is not None else unfinished
    return Simulated(returns, unfinished, paths.longest, "paths through logged rows")
