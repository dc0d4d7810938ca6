"""COP-TD: the state ratio of the average reward by temporal differences that run backwards,

    c(s') ← c(s') + α (β c(s) − c(s')) x(s'),   β = π(a|s)/μ(a|s),   then projected on E[c] = 1,

whose fixed point is c(s') = E[β c(s) | s'] with E[c] = 1, the ratio d_π/d_μ of the policies' stationary distributions.
In a table or with linear features c = xᵀθ the projected fixed point solves, with a multiplier η that is 0 in the limit,

    E[x(s) c(s)] − E[β x(s') c(s)] + η E[x] = 0,   E[c] = 1,

and the value is E[βcr]/E[βc]. The exact solution has the first term at the logged states, where it is right for any
log. The stochastic update has it at the next states, as published: it takes the log to be a stationary stretch of the
behaviour's chain, in which states and next states are distributed alike. It needs single transitions, the average
reward (discount 1) and the behaviour's probabilities. Ended episodes restart from the initial states.

References:
    Hallak and Mannor, Consistent On-Line Off-Policy Evaluation, ICML 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gradientdice.base.errors import require_number
from gradientdice.dice.saddle import Solver
from gradientdice.estimators.answer import Answer, Declares
from gradientdice.estimators.behavior import require_behavior
from gradientdice.estimators.behavior_cloning import BehaviorCloning
from gradientdice.estimators.needs import require_needs
from gradientdice.estimators.state_ratio.sampled_updates import (
    STATIONARY,
    Draw,
    check_options,
    constant_ratio,
    iterate,
    sampled_solution,
)
from gradientdice.estimators.state_ratio.state_answer import KnownBehavior, Reading, solve_flow, state_answer
from gradientdice.estimators.state_ratio.state_flow import StateFlow
from gradientdice.problem.problem import Problem


@dataclass(frozen=True)
class COPTD(Declares):
    """Consistent on-line off-policy temporal differences, for the average reward.

    Attributes:
        discount: 1.
        solver: "exact" for the fixed point itself, "stochastic" for the update that leads to it.
        steps: of the stochastic update.
        learning_rate: of the stochastic update; its second half is averaged.
        rank_tolerance: directions below this share of the features' largest are dropped by the exact solver; None
            leaves it to the function class.
        behavior: how to estimate the behaviour's probabilities where the log does not have them.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("continuing"), np.tile([0.1, 0.9], (13, 1))
        >>> data = mdp.rollout(np.full((13, 2), 0.5), 200, 100, np.random.default_rng(0))
        >>> low, high = gd.evaluate(data, gd.TabularPolicy(target), gd.COPTD(1.0)).interval
        >>> bool(low < mdp.value(target, 1.0) < high)
        True
    """

    family = "state ratio"
    reference = "Hallak and Mannor, ICML 2017"
    average_only = True
    needs_behavior = True

    discount: float
    solver: Literal["exact", "stochastic"] = "exact"
    steps: int = 30_000
    learning_rate: float = 0.05
    rank_tolerance: float | None = None
    behavior: BehaviorCloning | None = None

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)
        require_behavior(self.behavior)
        check_options(self.solver, self.steps, self.learning_rate, self.rank_tolerance)

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """The average reward, with the ratio c(s)β(s,a) and, for the exact solver, influence values."""
        require_needs(self, problem, solver)
        return self.answer_as("COPTD", problem)

    def answer_as(self, name: str, problem: Problem) -> Answer:
        """The same at discount 1 for an estimator of another name, in which what the log lacks is refused."""
        known = KnownBehavior.of(name, problem, self.behavior)
        flow = StateFlow.of(known.log(), known.importance, 1.0)
        if self.solver == "exact":
            fit, solution = solve_flow(
                flow, flow.start, mean_one=True, normalised=True, rank_tolerance=self.rank_tolerance
            )
            return state_answer(known, flow, solution, fit, Reading(normalised=True))
        mean = flow.mean
        normal = mean / (mean @ mean)

        def update(params: np.ndarray, draw: Draw) -> np.ndarray:
            error = draw.importance * (draw.features @ params) - draw.following @ params
            params = params + self.learning_rate * error * draw.following
            return params + (1 - mean @ params) * normal

        begin = constant_ratio(flow, self.rank_tolerance)
        params, status = iterate(flow, begin, update, self.steps, problem.seed)
        reading = Reading(normalised=True, notes=(STATIONARY,))
        return state_answer(known, flow, sampled_solution(params, status, self.steps), None, reading)
