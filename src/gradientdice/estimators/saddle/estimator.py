"""How a saddle estimator answers: by the solver given, else in closed form, or by networks if those are the functions.

A class with an objective gets `answer` from the mixin `SaddleEstimator`. With a closed form it also has influence
values and so an interval; with a stochastic solver it has a value and a ratio.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from gradientdice.dice.closed_form import ClosedForm, require_linear
from gradientdice.dice.saddle import LinearEstimator, SaddleObjective, Solver
from gradientdice.dice.solution import LinearFit, Solution
from gradientdice.estimators.answer import Answer, Declares, Estimator
from gradientdice.estimators.doubly_robust.combine import combine
from gradientdice.functions.mlp import MLP
from gradientdice.problem.problem import Problem, describe
from gradientdice.statistics.evidence import Evidence
from gradientdice.statistics.influence import HeldOut, influence

# A table with more logged pairs is solved on the sparse empirical MDP; up to here the dense system takes a moment.
SPARSE_ABOVE = 1_000
FEATURES_ASSUMED = "the interval assumes that the features are right; it does not cover their misfit"


class SaddleEstimator(Declares):
    """Gives an estimator with a saddle objective its `answer`.

    A subclass has `discount`, `ridge`, `ratio_minimises`, `ratio(raw)` and `objective(terms)`; with `least_squares`,
    `critic` and `adjoint` it also has a closed form. It may say what its optimum is over a table.
    """

    family = "saddle point"
    takes_networks = True
    takes_solver = True
    from_sums = True

    @property
    def solves_flow(self) -> bool:
        """Whether with a table its ratio is that of the empirical MDP, whatever its other settings."""
        return False

    def over_table(self) -> LinearEstimator | None:
        """An estimator with a closed form that has the same ratio over a table; None if there is no other."""
        return None

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """The value, with its ratio and, in closed form, its influence values."""
        return saddle_answer(self, problem, solver)


@dataclass(frozen=True)
class Answering:
    """A saddle objective that has no `answer` of its own, as an estimator."""

    objective: SaddleObjective

    @property
    def discount(self) -> float:
        """γ."""
        return self.objective.discount

    def __repr__(self) -> str:
        return repr(self.objective)

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """As for a subclass of `SaddleEstimator`."""
        return saddle_answer(self.objective, problem, solver)


def objective_of(estimator: Estimator) -> SaddleObjective | None:
    """The saddle objective that an estimator optimises, which a Q belongs to; None if it has none."""
    objective = estimator.objective if isinstance(estimator, Answering) else estimator
    return objective if isinstance(objective, SaddleObjective) else None


def saddle_answer(estimator: Any, problem: Problem, solver: Solver | None) -> Answer:
    """The answer of any saddle objective."""
    if solver is None and isinstance(problem.functions, MLP):
        from gradientdice.estimators.doubly_robust.networks import neural_doubly_robust

        return neural_doubly_robust(problem, estimator)
    if solver is None or isinstance(solver, ClosedForm):
        return _closed_form(estimator, problem, solver or ClosedForm())
    fit = solver.fit(estimator, problem)
    functions = problem.functions if isinstance(problem.functions, MLP) else problem.rows.functions
    return Answer(
        value=fit.value,
        ratio=fit.ratio,
        solution=fit.solution,
        evidence=Evidence(mean_ratio=fit.mean_ratio),
        functions=describe(functions),
        status=fit.solution.status,
        notes=(fit.note,),
    )


def linear_form(estimator: Any, problem: Problem) -> LinearEstimator:
    """What the closed form solves for an estimator: itself or, with a table, what has the same ratio at its optimum.

    Raises:
        InputError: if there is no closed form with these functions.
    """
    same = estimator.over_table() if problem.support is not None and hasattr(estimator, "over_table") else None
    return require_linear(estimator) if same is None else same


def _closed_form(estimator: Any, problem: Problem, solver: ClosedForm) -> Answer:
    solved = linear_form(estimator, problem)
    answer = linear_answer(solved, problem, solver)
    if solved is estimator:
        return answer
    note = (
        f"with a table the optimum of {type(estimator).__name__} is the solution of the flow equations, found exactly"
    )
    return replace(answer, solution=_without_parameters(answer.solution), notes=(*answer.notes, note))


def linear_answer(estimator: LinearEstimator, problem: Problem, solver: ClosedForm) -> Answer:
    """The answer of an estimator with a closed form; that of a large table is found on the sparse empirical MDP."""
    if _is_sparse(estimator, problem):
        return sparse_answer(problem, estimator.discount)
    fit = solver.fit(estimator, problem)
    assert fit.linear is not None
    shares = influence(fit.linear, problem.rows)
    return replace(
        fit_answer(estimator, fit.linear, describe(problem.rows.functions), misfit_notes(problem)),
        influence=shares,
        # The fit's ratio is one to the data with the absorbing state's own row among them.
        ratio=problem.row_share(estimator.discount) * shares.ratio,
    )


def fit_answer(estimator: LinearEstimator, fit: LinearFit, functions: str, notes: tuple[str, ...]) -> Answer:
    """What a closed-form fit says, but for what it says of each row.

    Args:
        estimator: what was fitted.
        fit: the fit.
        functions: the function class, in words.
        notes: what its interval leaves out.
    """
    ridge = getattr(estimator, "ridge", 0) > 0
    biased = ("a ridge biases the value, and the interval does not cover that",) if ridge else ()
    return Answer(
        value=fit.value,
        solution=fit.solution,
        evidence=Evidence(mean_ratio=fit.mean_ratio, bellman=True),
        functions=functions,
        status=fit.solution.status,
        notes=(*biased, *notes),
    )


def misfit_notes(problem: Problem) -> tuple[str, ...]:
    """What the interval of a linear fit leaves out: nothing with a table, or where the search widens it."""
    return () if problem.support is not None or problem.is_searched else (FEATURES_ASSUMED,)


def _is_sparse(estimator: LinearEstimator, problem: Problem) -> bool:
    """Whether a table is to be solved on the empirical MDP: it is large, or has small closed sets of states.

    The empirical MDP leaves small closed sets and refuses large ones by name, where a dense system is singular.
    """
    if problem.support is None or not getattr(estimator, "solves_flow", False):
        return False
    if problem.support.table.num_features > SPARSE_ABOVE:
        return True
    return estimator.discount == 1 and problem.empirical(1.0).is_irregular


def sparse_answer(problem: Problem, discount: float) -> Answer:
    """The exact solution of the flow equations of a table, with its ratio and influence values."""
    assert problem.support is not None
    solved = problem.tabular_solution(discount)
    average = solved.ratio * 0 + solved.average
    scores = HeldOut(solved.ratio, solved.residual, average, solved.initial_values, solved.restarts)
    value, shares = combine(discount, problem.data, scores, 1.0)
    return Answer(
        value=value,
        influence=shares,
        ratio=solved.ratio,
        evidence=Evidence(mean_ratio=solved.mean_ratio),
        functions=describe(problem.support.table),
        notes=("solved on the sparse empirical MDP",),
    )


def _without_parameters(solution: Solution | None) -> Solution | None:
    """How well the equations can be solved is the same, but the parameters are not those of another objective."""
    if solution is None:
        return None
    nothing = solution.ratio_params[:0]
    return replace(solution, ratio_params=nothing, critic_params=nothing, norm_multiplier=0.0)
