"""`evaluate`, `compare` and `rank` for a scanned log: all questions are answered in the same passes over it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradientdice.base.errors import InputError
from gradientdice.default.automatic import Automatic
from gradientdice.dice.closed_form import ClosedForm
from gradientdice.estimators.answer import Estimator, declared
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.evaluation.estimate import Estimate
from gradientdice.evaluation.interval import Intervals
from gradientdice.evaluation.scan.features import linear_estimates
from gradientdice.evaluation.scan.questions import Question, ScannedEstimates
from gradientdice.evaluation.scan.searched import is_searched, searched_estimates
from gradientdice.evaluation.scan.table import table_estimates, table_of
from gradientdice.functions import MLP, LinearFunctions, Tabular
from gradientdice.policies import TabularPolicy
from gradientdice.problem.scan.asked import Asked


def evaluate_scanned(questions: Sequence[Question], intervals: Intervals, solver: Any = None) -> ScannedEstimates:
    """The answers for a scanned log."""
    if not (solver is None or isinstance(solver, ClosedForm)):
        return ScannedEstimates([_learned(question, intervals, solver) for question in questions], {})
    if isinstance(questions[0].asked.functions, MLP):
        raise InputError(
            "Networks of a scanned log need a solver that reads minibatches: give solver=PrimalDual(…). Without one, "
            "train on log.sample, which gives an interval too."
        )
    for question in questions:
        require_scannable(question.estimator)
    # A policy that is a table says how large it is.
    sized = next((each for each in questions if isinstance(each.asked.policy, TabularPolicy)), questions[0])
    asked = sized.asked
    if is_searched(asked):
        return searched_estimates(questions, intervals)
    table = asked.functions if isinstance(asked.functions, Tabular) else table_of(asked)
    if table is not None:
        return table_estimates(questions, table, intervals)
    return linear_estimates(questions, _functions(asked), intervals)


def require_scannable(estimator: Estimator) -> None:
    """An error if an estimator needs the log in memory."""
    if not declared(estimator).from_sums:
        raise InputError(
            f"{type(estimator).__name__} needs the log in memory. A scanned log is evaluated by GradientDICE, "
            "DualDICE, LSTDQ and, with a table, GenDICE; or use it on log.sample."
        )


def _learned(question: Question, intervals: Intervals, solver: Any) -> Estimate:
    # Training needs JAX.
    from gradientdice.dice.stochastic.primal_dual import PrimalDual
    from gradientdice.evaluation.scan.learned import learned_estimate

    if not isinstance(solver, PrimalDual):
        raise InputError(
            f"{type(solver).__name__} needs the log in memory. A scanned log is solved in closed form, which needs no "
            "solver=, or by PrimalDual; or use log.sample."
        )
    asked, estimator = question.asked, question.estimator
    require_scannable(estimator)
    if not declared(estimator).takes_solver:
        raise InputError(f"{type(estimator).__name__} has a closed form only: leave solver= out.")
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
            "The states of the scanned log are whole numbers, and too many for a table. Give functions=: "
            "LinearFeatures(…), or RandomFourier(…), which is scaled to a sample of the log; or evaluate log.sample."
        )
    assert not isinstance(asked.functions, MLP)
    return asked.functions
