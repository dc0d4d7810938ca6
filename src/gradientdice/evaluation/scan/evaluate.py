"""`evaluate` for a scanned log."""

from __future__ import annotations

from typing import Any

from gradientdice.errors import InputError
from gradientdice.estimators.answer import Estimator
from gradientdice.estimators.doubly_robust.automatic import Automatic
from gradientdice.estimators.saddle.estimator import SaddleEstimator
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.estimators.value.lstdq import LSTDQ
from gradientdice.evaluation.estimate import Estimate
from gradientdice.evaluation.interval import Intervals
from gradientdice.evaluation.scan.features import linear_estimate
from gradientdice.evaluation.scan.table import table_estimate, table_of
from gradientdice.functions import MLP, LinearFunctions, Tabular
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
        return _learned(asked, estimator, intervals, solver)
    if isinstance(asked.functions, MLP):
        raise InputError(
            "Networks of a scanned log need a solver that reads minibatches: give solver=PrimalDual(…). Without one, "
            "train on log.sample, which gives an interval too."
        )
    table = asked.functions if isinstance(asked.functions, Tabular) else table_of(asked)
    if table is not None:
        return table_estimate(asked, table, estimator, intervals)
    return linear_estimate(asked, _functions(asked), estimator, intervals)


def _learned(asked: Asked, estimator: Estimator, intervals: Intervals, solver: Any) -> Estimate:
    # Training needs JAX.
    from gradientdice.evaluation.scan.learned import learned_estimate
    from gradientdice.solvers.stochastic.primal_dual import PrimalDual

    if not isinstance(solver, PrimalDual):
        raise InputError(
            f"{type(solver).__name__} needs the log in memory. A scanned log is solved in closed form, which needs no "
            "solver=, or by PrimalDual; or use log.sample."
        )
    if isinstance(estimator, LSTDQ):
        raise InputError("LSTDQ has a closed form only: leave solver= out.")
    used = GradientDICE(estimator.discount) if isinstance(estimator, Automatic) else estimator
    if asked.functions is None:
        raise InputError(
            "PrimalDual on a scanned log needs functions=: LinearFeatures(…), RandomFourier(…) or MLP(…). A table is "
            "solved from counts: leave solver= out."
        )
    return learned_estimate(asked, used, intervals, solver)


def _functions(asked: Asked) -> LinearFunctions:
    if asked.functions is None:
        raise InputError(
            "A scanned log whose states are not few whole numbers needs functions=: Tabular(S, A), LinearFeatures(…), "
            "or RandomFourier(…), which is scaled to a sample of the log. The search for features needs a log in "
            "memory: evaluate log.sample."
        )
    assert not isinstance(asked.functions, MLP)
    return asked.functions
