"""GEM, gradient emphasis learning: the emphasis m of a state by the gradient of its projected Bellman error,

    m(s') = i(s') + γ E[β m(s) | s'],   β = π(a|s)/μ(a|s),   m = xᵀw,
    u ← u + α (i(s') + γβ xᵀw − x'ᵀw − x'ᵀu) x',
    w ← w + α (x'ᵀu)(x' − γβx).

With the interest i = μ0/d_μ the ratio of the discounted visitation is c = d_π/d_μ = (1−γ)m, and the value E[βcr]. The
iteration minimises ‖E[x' (i + γβ m − m')]‖² in the metric E[x'x'ᵀ]⁻¹. Where its matrix can be inverted the minimum is 0
and u = 0, so that the fixed point is that of

    E[x(s) c(s)] − γ E[β x(s') c(s)] = (1−γ) E[x i] = (1−γ) E_μ0[x]:

least squares for the interest, min E[(i − xᵀθ)²] = min E[(xᵀθ)²] − 2E_μ0[xᵀθ], give θ = E[xxᵀ]⁻¹E_μ0[x], and what the
equations need of it, E[x xᵀθ], is E_μ0[x] whatever the features. In a table it is the ratio of frequencies.

The exact solution has the first term at the logged states, where it is right for any log; the stochastic iteration is
at the next states, as published: see COP-TD. It needs single transitions, initial states, a discount below 1 and the
behaviour's probabilities.

References:
    Zhang, Liu, Yao and Whiteson, Provably Convergent Two-Timescale Off-Policy Actor-Critic with Function
    Approximation, ICML 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gradientdice.base.errors import require_flag, require_number
from gradientdice.dice.closed_form import whitening
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
class GEM(Declares):
    """Gradient emphasis learning, with the interest that makes the emphasis a density ratio.

    Attributes:
        discount: γ in [0, 1).
        solver: "exact" for the fixed point itself, "stochastic" for the iteration that leads to it.
        steps: of the stochastic iteration.
        learning_rate: of the stochastic iteration; its second half is averaged.
        rank_tolerance: directions below this share of the features' largest are dropped; None leaves it to the
            function class.
        self_normalised: whether to divide by the mean of the ratio c(s)β(s,a), the absorbing state included. Without
            it, an error of the mean of β is magnified up to 1/(1−γ) times.
        behavior: how to estimate the behaviour's probabilities where the log does not have them.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("continuing"), np.tile([0.1, 0.9], (13, 1))
        >>> data = mdp.rollout(np.full((13, 2), 0.5), 200, 100, np.random.default_rng(0))
        >>> low, high = gd.evaluate(data, gd.TabularPolicy(target), gd.GEM(0.9)).interval
        >>> bool(low < mdp.value(target, 0.9) < high)
        True
    """

    family = "state ratio"
    reference = "Zhang, Liu, Yao and Whiteson, ICML 2020"
    discounted_only = True
    needs_behavior = True

    discount: float
    solver: Literal["exact", "stochastic"] = "exact"
    steps: int = 100_000
    learning_rate: float = 0.1
    rank_tolerance: float | None = None
    self_normalised: bool = True
    behavior: BehaviorCloning | None = None

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)
        require_behavior(self.behavior)
        require_flag("self_normalised", self.self_normalised)
        check_options(self.solver, self.steps, self.learning_rate, self.rank_tolerance)

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """The value, with the ratio c(s)β(s,a) and, for the exact solver, influence values."""
        require_needs(self, problem, solver)
        known = KnownBehavior.of("GEM", problem, self.behavior)
        flow = StateFlow.of(known.log(), known.importance, self.discount)
        normalised = self.self_normalised
        if self.solver == "exact":
            fit, solution = solve_flow(
                flow, flow.start, mean_one=False, normalised=normalised, rank_tolerance=self.rank_tolerance
            )
            return state_answer(known, flow, solution, fit, Reading(normalised=normalised))
        basis = whitening(flow.gram, flow.tolerance(self.rank_tolerance))
        interest = basis @ (basis.T @ flow.start)  # (1−γ)i = xᵀ of this, so that w is the ratio's own
        gamma, rate = self.discount, self.learning_rate

        def update(params: np.ndarray, draw: Draw) -> np.ndarray:
            u, w = params
            direction = draw.following - gamma * draw.importance * draw.features
            error = draw.following @ (interest - u) - direction @ w
            return params + rate * np.stack([error * draw.following, (draw.following @ u) * direction])

        begin = np.stack([np.zeros_like(interest), constant_ratio(flow, self.rank_tolerance)])
        (_, params), status = iterate(flow, begin, update, self.steps, problem.seed)
        solution = sampled_solution(params, status, self.steps)
        return state_answer(known, flow, solution, None, Reading(normalised=normalised, notes=(STATIONARY,)))
