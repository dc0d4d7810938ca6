"""A closed-form fit as an answer: its value, its ratio over the log, and its influence values."""

from __future__ import annotations

from dataclasses import replace

from gradientdice.estimators import DualDICE, Estimator, GenDICE, GradientDICE
from gradientdice.functions.design import FeatureMap
from gradientdice.functions.stream import LogDesign
from gradientdice.functions.tabular import Tabular
from gradientdice.inference.direct import DirectAnswer
from gradientdice.inference.influence import influence
from gradientdice.inference.sparse_table import sparse_table_answer
from gradientdice.moments import Moments
from gradientdice.solvers.closed_form import ClosedForm, LinearEstimator


def closed_form_answer(log: LogDesign, estimator: Estimator, solver: ClosedForm) -> DirectAnswer:
    """The answer of an estimator that has a closed form with these functions.

    Raises:
        InputError: if it has none.
    """
    solved = solvable(estimator, log.functions, solver)
    answer = linear_answer(log, solved, solver)
    if solved is estimator:
        return answer
    note = (
        f"with a table the optimum of {type(estimator).__name__} is the solution of the flow equations, found exactly"
    )
    solution = answer.solution
    if solution is not None:
        # How well the equations can be solved is the same, but the parameters are not those of its own objective.
        nothing = solution.ratio_params[:0]
        solution = replace(solution, ratio_params=nothing, critic_params=nothing, norm_multiplier=0.0)
    return replace(answer, solution=solution, notes=(*answer.notes, note))


def solvable(estimator: Estimator, functions: FeatureMap, solver: ClosedForm) -> LinearEstimator:
    """What the closed form solves for an estimator: itself or, with a table, what has the same ratio at its optimum.

    With a table the ratio that fulfils the flow equations is d̂/d̂_μ, which is not negative. GenDICE's objective is a
    divergence from those equations and has its least value, 0, there. DualDICE's first-order condition in f is these
    equations, whatever its power. Only a ridge pulls elsewhere.
    """
    if isinstance(functions, Tabular) and getattr(estimator, "ridge", 0) == 0:
        if isinstance(estimator, GenDICE) and (estimator.discount < 1 or estimator.norm_penalty > 0):
            return GradientDICE(estimator.discount)
        if isinstance(estimator, DualDICE) and estimator.discount < 1:
            return estimator if estimator.power == 2 else replace(estimator, power=2.0)
    return solver.require_linear(estimator)


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
