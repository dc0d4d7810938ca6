"""BCH, breaking the curse of horizon: the state ratio w whose flow through the log no function of a kernel can fault,

    γ = 1:  min_w Σ_ij Δ_i Δ_j k(s'_i, s'_j),   Δ = w(s) β − w(s'),   β = π(a|s)/μ(a|s),   E[w] = 1;
    γ < 1:  γ E[Δ ψ(s')] + (1−γ) E_μ0[(1 − w(s)) ψ(s)] = 0 for every ψ,  with rows of time t counting γᵗ.

The γᵗ make the data distribution d the *discounted* visitation of the behaviour, and w the ratio d_π/d of the target's
discounted visitation to it. For such d the sum of ψ w over the states is (1−γ) times that over initial states plus γ
times that over next states: it telescopes along each trajectory. Both cases are then

    E[w(s) ψ(s)] = γ E[β w(s) ψ(s')] + (1−γ) E_μ0[ψ(s)],   E[w] = 1,

with one term at the logged states. That is how it is solved here, since trajectories that are cut do not telescope: the
published form is off by γᵀ where a time limit cuts at T, and at γ = 1 by the share of the trajectories' ends.

With w = φᵀu and k = ψᵀψ it is constrained least squares, min ‖E[(ψ − γβψ')φᵀ]u − (1−γ)E_μ0[ψ]‖², and the value is
E[wβr]/E[wβ], the absorbing state counted. In a table k is the identity of states. It needs the behaviour's
probabilities; below discount 1 also whole trajectories and initial states. At 1 ended episodes restart.

References:
    Liu, Li, Tang and Zhou, Breaking the Curse of Horizon: Infinite-Horizon Off-Policy Estimation, NeurIPS 2018.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradientdice.base.errors import InputError, require_number
from gradientdice.dice.closed_form import whitening
from gradientdice.dice.linear_systems import FactoredLeastSquares
from gradientdice.dice.saddle import LeastSquares, Solver
from gradientdice.dice.solution import Solution
from gradientdice.estimators.answer import Answer, Declares
from gradientdice.estimators.behavior import Episodes, require_behavior
from gradientdice.estimators.behavior_cloning import BehaviorCloning
from gradientdice.estimators.needs import require_needs
from gradientdice.estimators.state_ratio.state_answer import KnownBehavior, Reading, state_answer
from gradientdice.estimators.state_ratio.state_flow import StateFit, StateFlow
from gradientdice.functions.kernel import Nystrom, RandomFourier
from gradientdice.problem.problem import Problem


@dataclass(frozen=True)
class BCH(Declares):
    """Breaking the curse of horizon, in closed form.

    Attributes:
        discount: γ in [0, 1].
        tests: features that span the test functions' kernel over states; the functions' own if left out. More of them
            than functions, or a narrower kernel, tell apart ratios that the functions' own cannot.
        rank_tolerance: directions below this share of the functions' largest are dropped; None leaves it to the
            function class.
        behavior: how to estimate the behaviour's probabilities where the log does not have them.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("continuing"), np.tile([0.1, 0.9], (13, 1))
        >>> data = mdp.rollout(np.full((13, 2), 0.5), 200, 100, np.random.default_rng(0))
        >>> low, high = gd.evaluate(data, gd.TabularPolicy(target), gd.BCH(0.9)).interval
        >>> bool(low < mdp.value(target, 0.9) < high)
        True
    """

    family = "state ratio"
    reference = "Liu, Li, Tang and Zhou, NeurIPS 2018"
    needs_behavior = True

    discount: float
    tests: RandomFourier | Nystrom | None = None
    rank_tolerance: float | None = None
    behavior: BehaviorCloning | None = None

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)
        require_behavior(self.behavior)
        if self.rank_tolerance is not None:
            require_number("rank_tolerance", self.rank_tolerance, low=0, high=1)
        if self.tests is not None and not isinstance(self.tests, (RandomFourier, Nystrom)):
            raise InputError(f"tests must be RandomFourier(…) or Nystrom(…), not {self.tests!r:.60}.")

    @property
    def whole_trajectories(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Below discount 1 a row counts by its time in its episode."""
        return self.discount < 1

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """The value, with the ratio w(s)β(s,a) and influence values."""
        require_needs(self, problem, solver)
        known = KnownBehavior.of("BCH", problem, self.behavior)
        weights = problem.data.weights
        if self.discount < 1:
            episodes = Episodes.of("BCH", problem.data)
            weights = episodes.weights[episodes.index] * self.discount**episodes.step
        tests = None if self.tests is None else known.log(weights, self.tests)
        flow = StateFlow.of(known.log(weights), known.importance, self.discount, tests=tests)
        fit, solution = _fit(flow, self.rank_tolerance)
        return state_answer(known, flow, solution, fit, Reading(normalised=True))


def _fit(flow: StateFlow, rank_tolerance: float | None) -> tuple[StateFit, Solution]:
    """The u that minimises ‖Mu − h‖² subject to vᵀu = 1, v = E[φ], and the adjoints.

    With MᵀMq + νv = g and vᵀq = 0 the value moves by −qᵀ of what the gradient Mᵀ(Mu − h) + ηv is perturbed by, and by
    −ν of what the constraint is.
    """
    basis = whitening(flow.gram, flow.tolerance(rank_tolerance))
    matrix, mean = flow.balance @ basis, basis.T @ flow.mean
    if not mean.any():
        raise InputError("BCH: the features' mean is 0, so that E[w] = 1 cannot be asked of them: add an intercept.")
    factored = FactoredLeastSquares(LeastSquares(matrix, flow.start, mean))
    params = factored.solution
    residual = matrix @ params - flow.start
    gradient = basis.T @ flow.gradient(basis @ params, normalised=True)
    adjoint = factored.apply_inverse(gradient)
    tests = matrix @ adjoint
    length = float(mean @ mean)
    force, norm = -float(mean @ (matrix.T @ residual)) / length, float(mean @ (gradient - matrix.T @ tests)) / length
    stats = {
        "condition_number": factored.condition_number,
        "rank": basis.shape[1],
        "num_features": len(flow.mean),
        "loss": float(residual @ residual),
    }
    solution = Solution(basis @ params, tests, force, factored.status, stats)
    fit = StateFit(basis @ params, tests, basis @ (force * adjoint + norm * params), basis @ adjoint, residual)
    return fit, solution
