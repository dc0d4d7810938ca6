"""The evidence behind a distribution of the return: checks of weighted episodes, and of simulated paths."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gradientdice.base.errors import InputError
from gradientdice.default.automatic import Automatic
from gradientdice.estimators.answer import Answer, Estimator
from gradientdice.estimators.returns.points import StepFunction
from gradientdice.estimators.trajectory.doubly_robust import WDR
from gradientdice.estimators.trajectory.importance import WIS
from gradientdice.evaluation.assumptions import enough_observations, row_checks
from gradientdice.evaluation.estimate import NO_RATIO, Estimate
from gradientdice.evaluation.evaluate import evaluate_problem
from gradientdice.evaluation.interval import ErrorShares, Intervals
from gradientdice.problem.problem import Problem
from gradientdice.statistics.checks import Check, above, below
from gradientdice.statistics.evidence import Evidence
from gradientdice.statistics.log_tests import LogTests

# Below ENOUGH weighted episodes' worth of the policy's own a quantile is hardly known; below FEWEST a handful of
# episodes decides all of it, and it may be wrong by any factor.
ENOUGH, FEWEST = 200.0, 30.0
# Paths that were left before their end are a caution once more than this share of what they earn is missing.
UNFINISHED = 0.01
# The mean of simulated returns is allowed so many standard errors of the simulation beside the estimate's interval.
SIMULATION_NOISE = 3.0


@dataclass(frozen=True, eq=False)
class Simulated:
    """Simulated returns.

    Attributes:
        returns: (p,) of all paths.
        unfinished: the share of paths that had not ended when they were left; 0 with a horizon.
        steps: after how many steps they were left.
        method: how they were simulated, in words.
        notes: what the reader should know.
    """

    returns: np.ndarray
    unfinished: float
    steps: int
    method: str
    notes: tuple[str, ...] = ()

    def missing(self, discount: float) -> float:
        """The share of the discounted time that lies behind the steps at which paths were left."""
        return self.unfinished * discount**self.steps


def weighted_checks(problem: Problem, function: StepFunction, effective: float, robust: bool) -> tuple[Check, ...]:
    """Checks of weighted episodes: their effective number, the shares in the error of their mean, and the log.

    Args:
        problem: the log and the policy.
        function: the weighted distribution function.
        effective: how many episodes the weights are worth.
        robust: whether it is the doubly robust one, which also reads next states.
    """
    estimator: Estimator = WDR(0.5) if robust else WIS(0.5)
    # Weighted episodes rest on what comes after each other in the log, and need no state that is the whole state.
    answer = Answer(value=function.mean, evidence=Evidence(markov=False), functions="a table" if robust else "")
    return (
        _effective(effective),
        *enough_observations(ErrorShares([_shares_of_the_mean(function)], None), 0.0),
        *row_checks(LogTests(problem.data, problem.seed), problem, estimator, answer),
    )


def simulated_evidence(
    problem: Problem, discount: float, horizon: int | None, confidence: float, simulated: Simulated
) -> tuple[tuple[Check, ...], tuple[str, ...]]:
    """Checks and cautions of simulated paths: those of the estimate from the same model, and how the two agree."""
    cautions = _unfinished(simulated, discount)
    try:
        estimate = evaluate_problem(problem, Automatic(discount), Intervals(confidence=confidence))
    except InputError as refused:
        return (), (f"the model's value cannot be checked: {refused}", *cautions)
    checks, doubts = list(estimate.checks), list(estimate.cautions)
    if estimate.diagnostics is None:
        doubts.append(NO_RATIO)
    if not estimate.status.ok:
        doubts.append(estimate.status.message)
    if not estimate.status.ok or (discount < 1 and horizon is None and estimate.interval is not None):
        checks.append(_against(estimate, simulated))
    return tuple(checks), (*doubts, *cautions)


def _effective(effective: float) -> Check:
    return above(
        "effective number of episodes",
        effective,
        ENOUGH,
        FEWEST,
        "episodes of the policy itself that the weighted episodes are worth",
        'source="model", a shorter horizon, or episodes of a behaviour nearer to the policy',
    )


def _against(estimate: Estimate, simulated: Simulated) -> Check:
    """How far the simulated mean lies from the estimate, in units of what interval and simulation allow.

    An estimate that did not end well allows nothing: the figure is then no number, which is an alarm.
    """
    figure, mean = math.nan, float(simulated.returns.mean())
    if estimate.status.ok and estimate.interval is not None and estimate.total is not None:
        remaining = 1 - estimate.discount
        low, high = (end / remaining for end in estimate.interval)
        largest = max(abs(estimate.possible.low), abs(estimate.possible.high)) / remaining
        noise = SIMULATION_NOISE * float(simulated.returns.std()) / math.sqrt(len(simulated.returns))
        # What paths are left with counts little; if it counts more, that is no excuse.
        left = min(simulated.missing(estimate.discount), UNFINISHED) * (largest if math.isfinite(largest) else 0.0)
        room = (high - estimate.total if mean > estimate.total else estimate.total - low) + noise + left
        apart = abs(mean - estimate.total)
        # Of a return that never varies, rounding is no distance.
        figure = 0.0 if apart <= 1e-9 * abs(estimate.total) else apart / room if room > 0 else math.inf
    return below(
        "simulated mean against the estimate",
        figure,
        1.0,
        1.0,
        f"the simulated returns have mean {mean:.6g}, and the estimate's value / (1 − γ) is "
        f"{math.nan if estimate.total is None else estimate.total:.6g}: their distance, in units of what the "
        "estimate's interval and the noise of the simulation allow",
        "log more data near the policy; take the mean from evaluate",
    )


def _unfinished(simulated: Simulated, discount: float) -> tuple[str, ...]:
    missing = simulated.missing(discount)
    if missing <= UNFINISHED:
        return ()
    if discount == 1:
        return (
            f"{missing:.0%} of the paths had not ended when they were left after {simulated.steps:,} steps: their "
            "totals are not complete",
        )
    return (
        f"paths were left after {simulated.steps:,} steps, with {missing:.0%} of the discounted time still to come: "
        "their returns are not complete",
    )


def _shares_of_the_mean(function: StepFunction) -> np.ndarray:
    """Each independent unit's share in the error of the mean return."""
    assert function.shares is not None
    return np.diff(function.shares, prepend=0.0, axis=1) @ function.points
