"""A closed-form fit as an answer: its value, its ratio over the log, and its influence values."""

from __future__ import annotations

from gradientdice.functions.design import FeatureMap
from gradientdice.functions.stream import LogDesign
from gradientdice.functions.tabular import Tabular
from gradientdice.inference.direct import DirectAnswer
from gradientdice.inference.influence import influence
from gradientdice.moments import Moments
from gradientdice.solvers.closed_form import ClosedForm, LinearEstimator


def linear_answer(log: LogDesign, estimator: LinearEstimator, solver: ClosedForm) -> DirectAnswer:
    """The answer of an estimator with linear functions, in closed form."""
    fit = solver.fit(estimator, Moments.from_design(log))
    shares = influence(fit, log)
    return DirectAnswer(
        fit.value,
        shares.ratio,
        fit.mean_ratio,
        shares,
        describe(log.functions),
        fit.solution.status,
        fit.solution,
        linear_notes(estimator, log.functions),
    )


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
