"""Whether a search has a learned model's Q among its candidates, and what to say where it has none."""

from __future__ import annotations

from gradientdice.effort import Effort
from gradientdice.estimators.doubly_robust.value_candidates import Simulation
from gradientdice.estimators.model.needs import can_simulate
from gradientdice.problem.folds import Folds
from gradientdice.problem.problem import Problem


def simulation_for(problem: Problem) -> Simulation | None:
    """What learns a model for this problem; None where nothing can or should be simulated."""
    if without_simulation(problem):
        return None
    # Networks need JAX, which a quick answer does not import.
    from gradientdice.estimators.model.values import simulated_values

    return simulated_values


def begin_simulation(problem: Problem, folds: Folds) -> None:
    """Begins to learn the dynamics while something else is computed on a GPU: compiling is what both wait for."""
    from gradientdice.estimators.model.values import begin_learning

    begin_learning(problem, folds, problem.effort)


def without_simulation(problem: Problem) -> str:
    """Why nothing is simulated, in words; empty if something is."""
    if not can_simulate(problem.policy):
        return "the policy is known at the log's states only, so that it was not simulated: Q is the kernel's alone"
    if problem.effort is Effort.QUICK:
        return "quick: the policy was not simulated in a learned model, which normal effort does"
    return ""
