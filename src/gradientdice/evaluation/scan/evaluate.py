"""`evaluate` for a scanned log."""

from __future__ import annotations

from typing import Any

from gradientdice.errors import InputError
from gradientdice.estimators.answer import Estimator
from gradientdice.estimators.doubly_robust.automatic import Automatic
from gradientdice.estimators.saddle.estimator import SaddleEstimator
from gradientdice.estimators.value.lstdq import LSTDQ
from gradientdice.evaluation.estimate import Estimate
from gradientdice.evaluation.interval import Intervals
from gradientdice.evaluation.scan.features import linear_estimate
from gradientdice.evaluation.scan.table import table_estimate, table_of
from gradientdice.functions import LinearFunctions, Tabular
from gradientdice.problem.scan.asked import Asked
from gradientdice.solvers.closed_form import ClosedForm


def evaluate_scanned(asked: Asked, estimator: Estimator, intervals: Intervals, solver: Any) -> Estimate:
    """The answer for a scanned log."""
    if not isinstance(estimator, (SaddleEstimator, LSTDQ, Automatic)):
        raise InputError(
            f"{type(estimator).__name__} needs the log in memory. A scanned log is evaluated by GradientDICE, "
            "DualDICE, LSTDQ and, with a table, GenDICE; or use it on log.sample."
        )
    if not (solver is None or isinstance(solver, ClosedForm)):
        raise InputError(
            f"{type(solver).__name__} needs the log in memory; a scanned log is solved in closed form. Leave solver= "
            "out, or use it on log.sample."
        )
    table = asked.functions if isinstance(asked.functions, Tabular) else table_of(asked)
    if table is not None:
        return table_estimate(asked, table, estimator, intervals)
    return linear_estimate(asked, _functions(asked), estimator, intervals)


def _functions(asked: Asked) -> LinearFunctions:
    if asked.functions is None:
        raise InputError(
            "A scanned log whose states are not few whole numbers needs functions=: Tabular(S, A), LinearFeatures(…), "
            "or RandomFourier(…), which is scaled to a sample of the log. The search for features needs a log in "
            "memory: evaluate log.sample."
        )
    return asked.functions
