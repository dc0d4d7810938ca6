"""From a solved flow of states to an answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import InputError
from gradientdice.dice.closed_form import whitening
from gradientdice.dice.linear_systems import LinearEquations
from gradientdice.dice.solution import Solution
from gradientdice.estimators.answer import Answer
from gradientdice.estimators.behavior import (
    RATIO_NOISE,
    importance_ratios,
    ratio_cautions,
    ratio_mean,
    require_behavior,
)
from gradientdice.estimators.behavior_cloning import BehaviorCloning
from gradientdice.estimators.needs import require_action_probabilities
from gradientdice.estimators.saddle.estimator import misfit_notes
from gradientdice.estimators.state_ratio.state_features import state_log
from gradientdice.estimators.state_ratio.state_flow import StateFit, StateFlow
from gradientdice.functions import LinearFunctions
from gradientdice.policies import DiscretePolicy, TabularPolicy
from gradientdice.problem.problem import Problem, describe
from gradientdice.problem.stream import LogDesign
from gradientdice.statistics.evidence import Evidence

# Influence values multiply several ratios, and the products must be numbers, too.
LARGEST = 1e60


@dataclass(frozen=True, eq=False)
class KnownBehavior:
    """What every estimator of a state ratio starts from.

    Attributes:
        name: the estimator's, for refusals.
        problem: the log, the policy and the functions.
        policy: π, which gives probabilities.
        importance: (n,) β = π/μ.
    """

    name: str
    problem: Problem
    policy: TabularPolicy | DiscretePolicy
    importance: Float[np.ndarray, " n"]

    @classmethod
    def of(cls, name: str, problem: Problem, behavior: BehaviorCloning | None) -> KnownBehavior:
        """The same, or an error that names what is missing."""
        require_behavior(behavior)
        data = problem.data
        known = require_action_probabilities(name, data, problem.policy)
        importance = importance_ratios(name, data, problem.policy, behavior)
        if importance.max() > LARGEST:
            row = int(np.argmax(importance))
            raise InputError(
                f"{name}: the importance ratio of row {row} is {importance[row]:.3g}, too large to solve equations "
                "with: correct its behavior_log_probs, drop the row, or use GradientDICE."
            )
        never = np.setdiff1d(np.arange(known.num_actions), data.actions)
        taken = never[known.probabilities_at(data.states)[:, never].max(axis=0, initial=0) > 0]
        if len(taken):
            raise InputError(
                f"{name}: the policy takes action {taken[0]}, which the log never contains: nothing is known of what "
                "follows it. Log more data."
            )
        return cls(name, problem, known, importance)

    def log(
        self, weights: Float[np.ndarray, " n"] | None = None, functions: LinearFunctions | None = None
    ) -> LogDesign:
        """The feature rows of the log's states."""
        used = self.problem.linear_functions if functions is None else functions
        return state_log(self.name, self.problem, self.policy.num_actions, used, weights)

    def mean_ratio(self, flow: StateFlow, ratio: Float[np.ndarray, " n"], mass: float) -> float:
        """The mean ratio of an answer that was divided by E[βc]: 1, unless that mean itself cannot be right.

        Below discount 1 the error of the mean of β is in it up to 1/(1−γ) times, and not in the value.
        """
        if flow.discount == 1:
            return mass
        density = np.abs(ratio) * flow.weights
        _, noise = ratio_mean(self.importance, density) if density.sum() > 0 else (0.0, 0.0)
        return 1.0 if abs(mass - 1) <= RATIO_NOISE * noise / (1 - flow.discount) else mass


def solve_flow(
    flow: StateFlow, start: Float[np.ndarray, " K"], *, mean_one: bool, normalised: bool, rank_tolerance: float | None
) -> tuple[StateFit, Solution]:
    """The θ with Mθ = start; if asked for, with E[c] = 1: then Mθ + ηE[φ] = start, which a sample can fulfil.

    It is solved in a basis in which E[φφᵀ] = I, without the directions that the log does not show.
    """
    basis = whitening(flow.gram, flow.tolerance(rank_tolerance))
    matrix, right = basis.T @ flow.balance @ basis, basis.T @ start
    rank = len(right)
    if mean_one:
        mean = basis.T @ flow.mean
        matrix = np.block([[matrix, mean[:, None]], [mean[None], np.zeros((1, 1))]])
        right = np.append(right, 1.0)
    equations = LinearEquations(matrix, right)
    params = basis @ equations.solution[:rank]
    multiplier = float(equations.solution[rank]) if mean_one else 0.0
    gradient = basis.T @ flow.gradient(params, normalised=normalised)
    adjoint = equations.adjoint(np.append(gradient, 0.0) if mean_one else gradient)
    tests = basis @ adjoint[:rank]
    # What moves E[c] = 1 itself scales θ.
    scaling = float(adjoint[rank]) if mean_one else 0.0
    stats = {"condition_number": equations.condition_number, "rank": rank, "num_features": len(params)}
    solution = Solution(params, tests, multiplier, equations.status, stats)
    return StateFit(params, tests, multiplier * tests + scaling * params), solution


@dataclass(frozen=True)
class Reading:
    """How a value is read off a state ratio.

    Attributes:
        normalised: whether to divide by E[βc].
        from_initial: whether the chain starts from the log's initial states.
        notes: what the reader should know.
        cautions: why the value may not be the policy's.
    """

    normalised: bool
    from_initial: bool = True
    notes: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()


def state_answer(
    known: KnownBehavior, flow: StateFlow, solution: Solution, fit: StateFit | None, reading: Reading
) -> Answer:
    """The value of a state ratio, with influence values if it has adjoints.

    Args:
        known: the log, the policy and β.
        flow: the log's moments.
        solution: the ratio's parameters.
        fit: the same with its adjoints, or None.
        reading: how the value is read off.
    """
    normalised, notes = reading.normalised, reading.notes
    value, mass = flow.value(solution.ratio_params, normalised=normalised)
    if not np.isfinite(value):
        raise InputError(f"{known.name}: the importance ratios or rewards are too large for a finite value.")
    ratio = flow.ratio(solution.ratio_params)
    shares = None if fit is None else flow.shares(fit, normalised=normalised, from_initial=reading.from_initial)
    if fit is not None:
        notes = (*notes, *misfit_notes(known.problem))
    data = known.problem.data
    if fit is not None and data.behavior_log_probs is None:
        notes = (*notes, "the interval assumes that the estimated behaviour probabilities are right")
    # The log's own weights may not be those of the equations, and the reader knows only the former.
    given = data.row_weights
    share = np.divide(flow.weights, given, out=np.zeros_like(given), where=given > 0) * given.sum() / flow.weights.sum()
    density = ratio * flow.importance / (mass if normalised else 1.0)
    mean_ratio = known.mean_ratio(flow, ratio, mass) if normalised else mass
    functions = flow.log.functions if known.problem.support is None else known.problem.support.table
    return Answer(
        value=value,
        influence=shares,
        ratio=density * share,
        solution=solution,
        evidence=Evidence(mean_ratio=mean_ratio, density=density),
        functions=describe(functions),
        status=solution.status,
        notes=notes,
        cautions=(*reading.cautions, *ratio_cautions(data, known.importance)),
    )
