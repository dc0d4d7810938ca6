"""Discounted COP-TD: COP-TD with a restart, which keeps it stable,

    c(s') ← c(s') + α (γ β c(s) + (1−γ) − c(s')) x(s'),   β = π(a|s)/μ(a|s).

Its fixed point solves E[x(s) c(s)] = γ E[β x(s') c(s)] + (1−γ) E[x(s)]: c = d/d_μ, where d is the discounted
visitation of the target policy *from states drawn from the log*. The value E[βcr] is then that of the policy started
where the log has its states, not from the initial distribution; the two agree where the log's states are distributed as
the initial ones. In a chain without ends both tend to the average reward as γ goes to 1, where this is COP-TD.

The exact solution has the first term and the restart at the logged states, the stochastic update at the next states, as
published: see COP-TD. It needs single transitions and the behaviour's probabilities, and no initial states.

References:
    Gelada and Bellemare, Off-Policy Deep Reinforcement Learning by Bootstrapping the Covariate Shift, AAAI 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gradientdice.base.errors import require_flag, require_number
from gradientdice.dice.saddle import Solver
from gradientdice.estimators.answer import Answer, Declares
from gradientdice.estimators.behavior import require_behavior
from gradientdice.estimators.behavior_cloning import BehaviorCloning
from gradientdice.estimators.needs import require_needs
from gradientdice.estimators.state_ratio.cop_td import COPTD
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

FROM_THE_LOG = "the value is that of the policy started from the log's states, not from its initial states"


@dataclass(frozen=True)
class DiscountedCOPTD(Declares):
    """COP-TD that restarts from the log's own states with probability 1−γ.

    Attributes:
        discount: γ in [0, 1]; at 1 it is COP-TD.
        solver: "exact" for the fixed point itself, "stochastic" for the update that leads to it.
        steps: of the stochastic update.
        learning_rate: of the stochastic update; its second half is averaged.
        rank_tolerance: directions below this share of the features' largest are dropped by the exact solver; None
            leaves it to the function class.
        self_normalised: whether to divide by the mean of the ratio c(s)β(s,a), the absorbing state included. Without
            it, an error of the mean of β is magnified up to 1/(1−γ) times.
        behavior: how to estimate the behaviour's probabilities where the log does not have them.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("continuing"), np.tile([0.1, 0.9], (13, 1))
        >>> data = mdp.rollout(np.full((13, 2), 0.5), 200, 100, np.random.default_rng(0))
        >>> from_the_log = gd.mdp.TabularMDP(
        ...     mdp.transition, mdp.reward, np.bincount(data.states) / len(data)
        ... )
        >>> low, high = gd.evaluate(
        ...     data, gd.TabularPolicy(target), gd.DiscountedCOPTD(0.9)
        ... ).interval
        >>> bool(low < from_the_log.value(target, 0.9) < high)
        True
    """

    family = "state ratio"
    reference = "Gelada and Bellemare, AAAI 2019"
    needs_behavior = True

    discount: float
    solver: Literal["exact", "stochastic"] = "exact"
    steps: int = 30_000
    learning_rate: float = 0.05
    rank_tolerance: float | None = None
    self_normalised: bool = True
    behavior: BehaviorCloning | None = None

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)
        require_behavior(self.behavior)
        require_flag("self_normalised", self.self_normalised)
        check_options(self.solver, self.steps, self.learning_rate, self.rank_tolerance)

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """The value from the log's states, with the ratio c(s)β(s,a) and, for the exact solver, influence values."""
        require_needs(self, problem, solver)
        if self.discount == 1:
            same = COPTD(1.0, self.solver, self.steps, self.learning_rate, self.rank_tolerance, self.behavior)
            return same.answer_as("DiscountedCOPTD", problem)
        known = KnownBehavior.of("DiscountedCOPTD", problem, self.behavior)
        flow = StateFlow.of(known.log(), known.importance, self.discount, from_initial=False)
        normalised, restart = self.self_normalised, 1 - self.discount
        if self.solver == "exact":
            fit, solution = solve_flow(
                flow, restart * flow.logged, mean_one=False, normalised=normalised, rank_tolerance=self.rank_tolerance
            )
            fit = fit._replace(mean=-restart * fit.tests)  # the start is a mean over the rows, too
            notes = ()
        else:

            def update(params: np.ndarray, draw: Draw) -> np.ndarray:
                target = self.discount * draw.importance * (draw.features @ params) + restart
                return params + self.learning_rate * (target - draw.following @ params) * draw.following

            begin = constant_ratio(flow, self.rank_tolerance)
            params, status = iterate(flow, begin, update, self.steps, problem.seed)
            fit, solution, notes = None, sampled_solution(params, status, self.steps), (STATIONARY,)
        reading = Reading(normalised=normalised, from_initial=False, notes=notes, cautions=(FROM_THE_LOG,))
        return state_answer(known, flow, solution, fit, reading)
