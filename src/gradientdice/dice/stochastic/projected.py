"""Projected GradientDICE (Algorithm 1): iterates kept in balls, and their step-weighted average as the answer.

With R_W and R_Y the balls' radii and bounds E‖G_w‖² ≤ C₁, E‖G_y‖² ≤ C₂ on the stochastic gradients over them,

    M_*² = 2R_W²C₁ + 2R_Y²C₂,   α = 2c / (M_* √(5n)),   ε_opt ≤ √(5/n) (8 + 2 ln(2/δ)) max(c, 1/c) M_*

with probability 1 − δ (Nemirovski et al. 2009, proposition 3.2). There a player's step is α times twice its
squared radius, since its distances are measured in units of its ball; so it is here.

References:
    Zhang, Liu and Whiteson 2020, Algorithm 1 and appendix A.2. Deviations: −xxᵀ where G_{1,t} prints −xᵀx; C₁ and C₂
    are sums of the terms that the paper multiplies, and enter M_*² unsquared; the minimiser's subgradient has the sign
    of descent; the step has the √5 that its bound needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from gradientdice.base.errors import InputError, require_count, require_number
from gradientdice.dice.closed_form import ClosedForm
from gradientdice.dice.optimality import SaddleProblem
from gradientdice.dice.saddle import QuadraticSaddle
from gradientdice.dice.solution import Fit, Solution, Status
from gradientdice.dice.stochastic.functions import ConstantInit, Init, LinearClass, require_init
from gradientdice.dice.stochastic.plan import Constant, Plan, StepWeightedAverage
from gradientdice.dice.stochastic.primal_dual import as_solution, block_length, linear_fit, train
from gradientdice.dice.stochastic.setup import Recorder, log_setup
from gradientdice.dice.stochastic.sources import RowSource
from gradientdice.dice.stochastic.training import Group
from gradientdice.functions.mlp import MLP
from gradientdice.problem.moments import Moments
from gradientdice.problem.problem import Problem


@dataclass(frozen=True)
class Balls:
    """The radii of the two balls and the bounds C₁ and C₂ on the gradients over them."""

    ratio_radius: float
    critic_radius: float
    ratio_bound: float
    critic_bound: float

    @property
    def scale(self) -> float:
        """The scale M_* of the step size and of the bound."""
        return math.sqrt(2 * self.ratio_radius**2 * self.ratio_bound + 2 * self.critic_radius**2 * self.critic_bound)

    def step_size(self, steps: int, constant: float) -> float:
        """The analysed step size α = 2c / (M_* √(5n))."""
        return 2 * constant / (self.scale * math.sqrt(5 * steps))

    def error_bound(self, steps: int, constant: float, failure: float) -> float:
        """The bound on ε_opt that holds with probability 1 − failure."""
        return math.sqrt(5 / steps) * (8 + 2 * math.log(2 / failure)) * max(constant, 1 / constant) * self.scale


@dataclass(frozen=True)
class ProjectedPrimalDual:
    """Algorithm 1, for GradientDICE with linear or tabular functions.

    Attributes:
        steps: the number of updates, n.
        radius: of both balls; None is twice the closed-form saddle point's norms.
        step_constant: c in the analysed step size.
        learning_rate: a step size of your own for both players instead of the analysed one.
        batch_size: transitions an update.
        record_every: updates between two points of the learning curve.
        init: where the weights start.
    """

    steps: int
    radius: float | None = None
    step_constant: float = 1.0
    learning_rate: float | None = None
    batch_size: int = 1
    record_every: int | None = None
    init: Init = field(default_factory=lambda: ConstantInit(0.0, 0.0))

    def __post_init__(self) -> None:
        require_count("steps", self.steps)
        require_count("batch_size", self.batch_size)
        if self.record_every is not None:
            require_count("record_every", self.record_every)
        require_init(self.init)
        require_number("step_constant", self.step_constant, low=0, open_low=True)
        for name in ("radius", "learning_rate"):
            if getattr(self, name) is not None:
                require_number(name, getattr(self, name), low=0, open_low=True)

    def balls(self, estimator: QuadraticSaddle, source: RowSource, moments: Moments) -> tuple[Balls, Solution]:
        """The balls and gradient bounds for a problem, and its saddle point."""
        saddle = ClosedForm().solve(estimator, moments)
        ratio_norm = float(np.linalg.norm(saddle.ratio_params))
        critic_norm = math.hypot(float(np.linalg.norm(saddle.critic_params)), saddle.norm_multiplier)
        ratio_radius = self.radius or 2 * ratio_norm
        # At the answer the critic is often 0; its ball must still leave it room to move.
        critic_radius = self.radius or max(2 * critic_norm, 0.5 * ratio_radius)
        bounds = _gradient_bounds(estimator, source, ratio_radius, critic_radius)
        return Balls(ratio_radius, critic_radius, *bounds), saddle

    def solve(
        self, estimator: Any, source: RowSource, recorder: Recorder, moments: Moments, *, seed: int = 0
    ) -> Solution:
        """Train one run; its stats carry the step size, the radii, M_*, and the exact ε_opt of the answer."""
        if not isinstance(estimator, QuadraticSaddle):
            raise InputError(f"Algorithm 1 is for GradientDICE, not {type(estimator).__name__}: use PrimalDual.")
        if math.isinf(estimator.norm_penalty):
            raise InputError("Algorithm 1 needs a finite norm_penalty: norm_penalty=inf is for ClosedForm.")
        balls, saddle = self.balls(estimator, source, moments)
        group = self.group(estimator, source, recorder, balls)
        solution = as_solution(group, train(group, [seed]))
        inside = np.linalg.norm(saddle.ratio_params) <= balls.ratio_radius
        inside &= math.hypot(float(np.linalg.norm(saddle.critic_params)), saddle.norm_multiplier) <= balls.critic_radius
        problem = SaddleProblem(estimator, moments, balls.ratio_radius, balls.critic_radius)
        size = moments.for_discount(estimator.discount).num_features
        gap = problem.gap(solution.ratio_params[:size], solution.critic_params[:size], solution.norm_multiplier)
        stats = {
            **solution.stats,
            "step_size": float(group.hyper["rate"][0]),
            "ratio_radius": balls.ratio_radius,
            "critic_radius": balls.critic_radius,
            "scale": balls.scale,
            "optimality_gap": gap,
        }
        status = solution.status if inside or not solution.status.ok else Status.OUTSIDE_BALL
        return replace(solution, status=status, stats=stats)

    def group(self, estimator: Any, source: RowSource, recorder: Recorder, balls: Balls) -> Group:
        """A group of one estimator with this solver, in given balls."""
        plan = Plan(
            estimator=estimator,
            schedule=Constant(1.0),
            functions=LinearClass(source.num_features, self.init),
            steps=self.steps,
            batch_size=self.batch_size,
            record_every=block_length(self.steps, self.record_every),
            averaging=StepWeightedAverage(),
            with_ridge=estimator.ridge > 0,
            projected=True,
        )
        return Group(plan, source, recorder, self._numbers(estimator, balls))

    def fit(self, estimator: Any, problem: Problem) -> Fit:
        """Train one projected run on a problem, recording the value estimate."""
        if isinstance(problem.functions, MLP):
            raise InputError("ProjectedPrimalDual is for tables and linear features: with networks use PrimalDual.")
        _, source, recorder = log_setup(problem, estimator.discount)
        assert isinstance(source, RowSource)
        solution = self.solve(estimator, source, recorder, problem.moments, seed=problem.seed)
        return linear_fit(estimator, problem, solution)

    def _numbers(self, estimator: QuadraticSaddle, balls: Balls) -> dict[str, np.ndarray]:
        """The numbers of one projected run."""
        analysed = self.learning_rate is None
        rate = balls.step_size(self.steps, self.step_constant) if analysed else self.learning_rate
        numbers = {
            "discount": estimator.discount,
            "norm_penalty": estimator.norm_penalty,
            "ridge": estimator.ridge,
            "rate": rate,
            "ratio_radius": balls.ratio_radius,
            "critic_radius": balls.critic_radius,
            "ratio_step": 2 * balls.ratio_radius**2 if analysed else 1.0,
            "critic_step": 2 * balls.critic_radius**2 if analysed else 1.0,
        }
        return {name: np.array([value], dtype=np.float32) for name, value in numbers.items()}


def _gradient_bounds(
    estimator: QuadraticSaddle, source: RowSource, ratio_radius: float, critic_radius: float, draws: int = 4096
) -> tuple[float, float]:
    """Bounds C₁ and C₂, by the triangle inequality, from second moments of x, Δ = x − γx' and x0 over some draws."""
    gamma, lam, xi = estimator.discount, estimator.norm_penalty, estimator.ridge
    batch = jax.tree.map(np.asarray, source.rows(source.sample(jax.random.key(0), draws)))
    x, following, initial = (_dense(rows, source.num_features) for rows in batch)
    x2 = np.sum(x**2, axis=1)
    coupling = np.mean(x2 * (np.sum((x - gamma * following) ** 2, axis=1) + lam**2))
    own = np.mean(np.maximum(x2, lam) ** 2)
    constant = np.mean((1 - gamma) ** 2 * np.sum(initial**2, axis=1) + lam**2)
    ratio_bound = 2 * (coupling * critic_radius**2 + xi**2 * ratio_radius**2)
    critic_bound = 3 * (own * critic_radius**2 + coupling * ratio_radius**2 + constant)
    return float(ratio_bound), float(critic_bound)


def _dense(rows: Any, width: int) -> np.ndarray:
    matrix = rows.matrix(width)
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
