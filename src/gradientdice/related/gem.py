"""GEM, gradient emphasis learning: the emphasis m of a state by the gradient of its projected Bellman error,

    m(s') = i(s') + γ E[ρ m(s) | s'],   ρ = π(a|s)/μ(a|s),   m = xᵀw,
    u ← u + α (i(s') + γρ xᵀw − x'ᵀw − x'ᵀu) x',
    w ← w + α (x'ᵀu)(x' − γρx).

With the interest i = μ0/d_μ the ratio of the discounted visitation is c = d_π/d_μ = (1−γ)m, and the value E[ρcr]. The
iteration minimises ‖E[x' (i + γρ m − m')]‖² in the metric E[x'x'ᵀ]⁻¹. Where its matrix can be inverted the minimum is 0
and u = 0, so that the fixed point is that of

    E[x(s) c(s)] − γ E[ρ x(s') c(s)] = (1−γ) E[x i] = (1−γ) E_μ0[x]:

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

from gradientdice.data.transitions import Transitions
from gradientdice.errors import require_number
from gradientdice.functions.design import Functions
from gradientdice.functions.mlp import MLP
from gradientdice.inference.direct import DirectAnswer
from gradientdice.policies import Policy
from gradientdice.related.behavior_cloning import BehaviorCloning
from gradientdice.related.needs import require_discounted
from gradientdice.related.sampled_updates import (
    STATIONARY,
    Draw,
    check_options,
    constant_ratio,
    iterate,
    sampled_solution,
)
from gradientdice.related.state_answer import KnownBehavior, solve_flow, state_answer
from gradientdice.related.state_flow import StateFlow
from gradientdice.solvers.closed_form import whitening


@dataclass(frozen=True)
class GEM:
    """Gradient emphasis learning, with the interest that makes the emphasis a density ratio.

    Attributes:
        discount: γ in [0, 1).
        solver: "exact" for the fixed point itself, "stochastic" for the iteration that leads to it.
        steps: of the stochastic iteration.
        learning_rate: of the stochastic iteration; its second half is averaged.
        rank_tolerance: directions below this share of the features' largest are dropped.
        self_normalised: whether to divide by the mean of the ratio c(s)ρ(s,a), the absorbing state included. Without
            it, an error of the mean of ρ is magnified up to 1/(1−γ) times.
        behavior: how to estimate the behaviour's probabilities where the log does not have them.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("continuing"), np.tile([0.1, 0.9], (13, 1))
        >>> data = mdp.rollout(np.full((13, 2), 0.5), 200, 100, np.random.default_rng(0))
        >>> low, high = gd.evaluate(data, gd.TabularPolicy(target), gd.GEM(0.9)).interval
        >>> bool(low < mdp.value(target, 0.9) < high)
        True
    """

    discount: float
    solver: Literal["exact", "stochastic"] = "exact"
    steps: int = 100_000
    learning_rate: float = 0.1
    rank_tolerance: float = 1e-7
    self_normalised: bool = True
    behavior: BehaviorCloning | None = None

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)
        check_options(self.solver, self.steps, self.learning_rate, self.rank_tolerance)

    def answer(self, data: Transitions, policy: Policy, functions: Functions | MLP, seed: int) -> DirectAnswer:
        """The value, with the ratio c(s)ρ(s,a) and, for the exact solver, influence values."""
        require_discounted("GEM", self.discount)
        known = KnownBehavior.of("GEM", data, policy, functions, self.behavior)
        flow = StateFlow.of(known.log(), known.importance, self.discount)
        normalised = self.self_normalised
        if self.solver == "exact":
            fit, solution = solve_flow(
                flow, flow.start, mean_one=False, normalised=normalised, rank_tolerance=self.rank_tolerance
            )
            return state_answer(known, flow, solution, fit, normalised=normalised)
        basis = whitening(flow.gram, self.rank_tolerance)
        interest = basis @ (basis.T @ flow.start)  # (1−γ)i = xᵀ of this, so that w is the ratio's own
        gamma, rate = self.discount, self.learning_rate

        def update(params: np.ndarray, draw: Draw) -> np.ndarray:
            u, w = params
            direction = draw.following - gamma * draw.importance * draw.features
            error = draw.following @ (interest - u) - direction @ w
            return params + rate * np.stack([error * draw.following, (draw.following @ u) * direction])

        begin = np.stack([np.zeros_like(interest), constant_ratio(flow, self.rank_tolerance)])
        (_, params), status = iterate(flow, begin, update, self.steps, seed)
        solution = sampled_solution(params, status, self.steps)
        return state_answer(known, flow, solution, None, normalised=normalised, notes=(STATIONARY,))
