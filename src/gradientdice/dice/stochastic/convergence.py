"""Had a learner come to rest when its steps were over?

For a quadratic saddle with linear functions, such as GradientDICE, the log's moments say it exactly: with
P(w) = max_y L(w, y), the share (P(w) − P*) / (P(0) − P*) is 1 before any step and 0 at the saddle point. For other
objectives and for networks there is the drift of the recorded value over the last two fifths of the run.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from gradientdice.dice.closed_form import ClosedForm
from gradientdice.dice.saddle import QuadraticSaddle
from gradientdice.dice.solution import Curve
from gradientdice.problem.moments import Moments

# On Boyan's Chain, at four discounts, runs within 2% of the closed form's value have shares of at most 0.02, and runs
# that are off by more than 10% have shares above 0.1.
UNSOLVED_CAUTION, UNSOLVED_ALARM = 0.02, 0.1
# In standard deviations of the rewards.
DRIFT_CAUTION, DRIFT_ALARM = 0.05, 0.25
# A curve with fewer points has no last fifths.
FEWEST_POINTS = 10


def unsolved_share(estimator: Any, moments: Moments, ratio_params: Float[np.ndarray, " K"]) -> float | None:
    """The share of the objective that is left to go; None where the objective is not a quadratic saddle.

    Args:
        estimator: any saddle objective.
        moments: of the log that it was learned from.
        ratio_params: w, as learned.
    """
    if not isinstance(estimator, QuadraticSaddle) or math.isinf(estimator.norm_penalty):
        return None
    moments = moments.for_discount(estimator.discount)
    matrix, offset, quadratic = estimator.coupling(moments)
    inverse = np.linalg.pinv(quadratic, hermitian=True)

    def primal(w: np.ndarray) -> float:
        flow = offset + matrix @ w
        return 0.5 * float(flow @ inverse @ flow) + 0.5 * estimator.ridge * float(w @ w)

    best = primal(ClosedForm().solve(estimator, moments).ratio_params)
    start = primal(np.zeros(matrix.shape[1])) - best
    return (primal(ratio_params[: matrix.shape[1]]) - best) / start if start > 0 else 0.0


def drift(curve: Curve, rewards: Float[np.ndarray, " n"]) -> float | None:
    """How far the recorded value moved between the last two fifths of a run, in standard deviations of the rewards.

    None for a curve that is too short or not finite, and for rewards that are all alike.
    """
    spread, fifth = float(np.std(rewards)), len(curve.values) // 5
    if len(curve.values) < FEWEST_POINTS or spread == 0 or not np.isfinite(curve.values).all():
        return None
    last, before = curve.values[-fifth:], curve.values[-2 * fifth : -fifth]
    return float(abs(last.mean() - before.mean())) / spread
