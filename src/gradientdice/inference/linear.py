"""A closed-form fit as an answer: its value, its ratio over the log, and its influence values."""

from __future__ import annotations

from gradientdice.estimators import DualDICE, GradientDICE
from gradientdice.functions.design import FeatureMap
from gradientdice.functions.stream import LogDesign
from gradientdice.functions.tabular import Tabular
from gradientdice.inference.direct import DirectAnswer
from gradientdice.inference.influence import influence
from gradientdice.inference.sparse_table import sparse_table_answer
from gradientdice.moments import Moments
from gradientdice.solvers.closed_form import ClosedForm, LinearEstimator


def linear_answer(log: LogDesign, estimator: LinearEstimator, solver: ClosedForm) -> DirectAnswer:
    """The answer of an estimator with linear functions, in closed form; that of a large table is found sparsely."""
    if isinstance(log.functions, Tabular) and log.functions.is_sparse and solves_flow_exactly(estimator):
        return sparse_table_answer(log, estimator.discount)
    fit = solver.fit(estimator, Moments.from_design(log))
    shares = influence(fit, log)
    # The fit's ratio is one to the data with the absorbing state's own row among them.
    share = 1 - (fit.moments.absorbing_weight or 0.0) / fit.moments.weight
    return DirectAnswer(
        fit.value,
        share * shares.ratio,
        fit.mean_ratio,
        shares,
        describe(log.functions),
        fit.solution.status,
        fit.solution,
        linear_notes(estimator, log.functions),
        bellman=True,
    )


def solves_flow_exactly(estimator: LinearEstimator) -> bool:
    """Whether with a table its ratio is that of the empirical model, whatever its other settings."""
    if isinstance(estimator, DualDICE):
        return estimator.power == 2 and estimator.ridge == 0 and estimator.discount < 1
    return isinstance(estimator, GradientDICE) and estimator.ridge == 0 and estimator.norm_penalty > 0


def linear_notes(estimator: LinearEstimator, functions: FeatureMap) -> tuple[str, ...]:
    """What an interval of a linear fit does not know."""
    notes = []
    if getattr(estimator, "ridge", 0) > 0:
        notes.append("a ridge biases the value, and the interval does not know it")
    if not isinstance(functions, Tabular):
        notes.append("the interval takes the features to be right; it does not cover what they miss")
    return tuple(notes)


def describe(functions: FeatureMap) -> str:
    """A function class in a few words."""
    return repr(functions) if isinstance(functions, Tabular) else type(functions).__name__
