"""From a solved flow of states to an answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError
from gradientdice.functions.design import Functions
from gradientdice.functions.mlp import MLP
from gradientdice.functions.stream import LogDesign
from gradientdice.functions.tabular import Tabular
from gradientdice.inference.direct import DirectAnswer
from gradientdice.inference.linear import describe
from gradientdice.policies import DiscretePolicy, Policy, TabularPolicy
from gradientdice.related.behavior import RATIO_NOISE, importance_ratios, ratio_cautions, ratio_mean, require_behavior
from gradientdice.related.behavior_cloning import BehaviorCloning
from gradientdice.related.linear_equations import LinearEquations
from gradientdice.related.needs import linear_functions, require_action_probabilities
from gradientdice.related.state_features import state_log
from gradientdice.related.state_flow import StateFit, StateFlow
from gradientdice.solvers.closed_form import whitening
from gradientdice.solvers.solution import Solution

# Influence values multiply several ratios, and the products must be numbers, too.
LARGEST = 1e60


@dataclass(frozen=True, eq=False)
class KnownBehavior:
    """What every estimator of a state ratio starts from.

    Attributes:
        name: the estimator's, for refusals.
        data: the log.
        policy: π.
        functions: the function class.
        importance: (n,) ρ = π/μ.
    """

    name: str
    data: Transitions
    policy: TabularPolicy | DiscretePolicy
    functions: Functions
    importance: Float[np.ndarray, " n"]

    @classmethod
    def of(
        cls,
        name: str,
        data: Transitions,
        policy: Policy,
        functions: Functions | MLP,
        behavior: BehaviorCloning | None,
    ) -> KnownBehavior:
        """The same, or an error that names what is missing."""
        require_behavior(behavior)
        known = require_action_probabilities(name, data, policy)
        linear = linear_functions(name, functions)
        importance = importance_ratios(name, data, policy, behavior)
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
                f"{name}: the policy takes action {taken[0]}, which the log never shows: nothing is known of what "
                "follows it. Log more data."
            )
        return cls(name, data, known, linear, importance)

    def log(self, weights: Float[np.ndarray, " n"] | None = None, functions: Functions | None = None) -> LogDesign:
        """The feature rows of the log's states."""
        used = self.functions if functions is None else functions
        return state_log(self.name, self.data, self.policy.num_actions, used, weights)

    def unseen(self, flow: StateFlow, ratio: Float[np.ndarray, " n"]) -> float:
        """In which share of its time, in a table, the policy takes actions that the log does not show in that state."""
        mass = np.abs(ratio) * flow.weights
        if not isinstance(flow.log.functions, Tabular) or mass.sum() == 0:
            return 0.0
        states, index = np.unique(self.data.states, return_inverse=True)
        seen = np.zeros((len(states), self.policy.num_actions), dtype=bool)
        seen[index, self.data.actions] = True
        unseen = np.sum(self.policy.probabilities_at(states) * ~seen, axis=1)
        # Without those actions the ratio loses mass: the share is of what is left.
        return float(mass @ unseen[index] / mass.sum())

    def mean_ratio(self, flow: StateFlow, ratio: Float[np.ndarray, " n"], mass: float) -> float:
        """The mean ratio of an answer that was divided by E[ρc]: 1, unless that mean itself cannot be right.

        Below discount 1 the error of the mean of ρ is in it up to 1/(1−γ) times, and not in the value.
        """
        if flow.discount == 1:
            return mass
        density = np.abs(ratio) * flow.weights
        _, noise = ratio_mean(self.importance, density) if density.sum() > 0 else (0.0, 0.0)
        return 1.0 if abs(mass - 1) <= RATIO_NOISE * noise / (1 - flow.discount) else mass


def solve_flow(
    flow: StateFlow, start: Float[np.ndarray, " K"], *, mean_one: bool, normalised: bool, rank_tolerance: float
) -> tuple[StateFit, Solution]:
    """The θ with Mθ = start; if asked for, with E[c] = 1: then Mθ + ηE[φ] = start, which a sample can fulfil.

    It is solved in a basis in which E[φφᵀ] = I, without the directions that the log does not show.
    """
    basis = whitening(flow.gram, rank_tolerance)
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


def state_answer(
    known: KnownBehavior,
    flow: StateFlow,
    solution: Solution,
    fit: StateFit | None,
    *,
    normalised: bool,
    from_initial: bool = True,
    notes: tuple[str, ...] = (),
    cautions: tuple[str, ...] = (),
) -> DirectAnswer:
    """The value of a state ratio, with shares if it has adjoints.

    Args:
        known: the log, the policy and ρ.
        flow: the log's moments.
        solution: the ratio's parameters.
        fit: the same with its adjoints, or None.
        normalised: whether to divide by E[ρc].
        from_initial: whether the chain starts from the log's initial states.
        notes: what the reader should know.
        cautions: why the value may not be the policy's.
    """
    value, mass = flow.value(solution.ratio_params, normalised=normalised)
    if not np.isfinite(value):
        raise InputError(f"{known.name}: the importance ratios or rewards are too large for a finite value.")
    ratio = flow.ratio(solution.ratio_params)
    unseen = known.unseen(flow, ratio)
    # A table in which logged actions stand in for others has its own figure for them.
    stands_in = isinstance(known.functions, Tabular) and known.functions.is_sparse
    if unseen > 0:
        missed = f"in {unseen:.2g} of its time the policy takes actions that the log never shows in that state"
        notes = (*notes, f"{missed}: the value knows nothing of them")
    shares = None if fit is None else flow.shares(fit, normalised=normalised, from_initial=from_initial)
    if fit is not None and not isinstance(flow.log.functions, Tabular):
        notes = (*notes, "the interval takes the features to be right; it does not cover what they miss")
    if fit is not None and known.data.behavior_log_probs is None:
        notes = (*notes, "the interval takes the estimated behaviour probabilities to be known")
    # The log's own weights may not be those of the equations, and the reader knows only the former.
    given = known.data.row_weights
    share = np.divide(flow.weights, given, out=np.zeros_like(given), where=given > 0) * given.sum() / flow.weights.sum()
    density = ratio * flow.importance / (mass if normalised else 1.0)
    return DirectAnswer(
        value,
        density * share,
        known.mean_ratio(flow, ratio, mass) if normalised else mass,
        shares,
        describe(flow.log.functions),
        solution.status,
        solution,
        notes,
        cautions=(*cautions, *ratio_cautions(known.data, known.importance)),
        density=density,
        unlogged=None if stands_in or unseen == 0 else unseen,
    )
