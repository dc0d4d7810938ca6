"""Fitted Q evaluation: regression of Q on r + γQ̄' again and again,

    θ ← C⁻¹ (c + γ E[x x̄'ᵀ] θ),   C = E[x xᵀ],   c = E[x r],   value (1−γ) E_μ0[Q̄],

from θ = 0. Where it converges the limit is LSTDQ's, and so are its influence values. It converges if and only if the
spectral radius of γ C⁻¹ E[x x̄'ᵀ] is below 1: always for a table, not always for features off-policy. At γ = 1 the
regression is on r + Q̄' less its mean over the log, which is the average reward in the limit; this needs a constant
among the features, and a chain that does not go round in periods.

With `functions=MLP(…)` the regression is done by networks on minibatches, with a slowly following copy for Q̄', which is
kept within what the rewards allow. At γ = 1 they learn the Q of γ = 0.99 with restarts, and the value is the mean of
(1−γ)Q̄' over the log's next states: off by what the policy's hundred steps from there differ from its average.

References:
    Le, Voloshin and Yue, Batch Policy Learning under Constraints, ICML 2019, algorithm 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from gradientdice.base.errors import InputError, require_count, require_number
from gradientdice.dice.closed_form import ClosedForm, whitening
from gradientdice.dice.saddle import Solver
from gradientdice.dice.solution import Solution, Status
from gradientdice.estimators.answer import Answer, Declares
from gradientdice.estimators.minimax.mql import CONSTANT_OUTSIDE
from gradientdice.estimators.needs import require_needs
from gradientdice.estimators.saddle.estimator import misfit_notes
from gradientdice.estimators.value.lstdq import same_flow
from gradientdice.functions.mlp import MLP
from gradientdice.problem.problem import Problem, describe
from gradientdice.statistics.evidence import Evidence
from gradientdice.statistics.influence import influence

# Iterates that have grown so much against the first are on their way to infinity.
LARGEST_GROWTH = 1e12


@dataclass(frozen=True)
class FQE(Declares):
    """Fitted Q evaluation.

    Attributes:
        discount: γ in [0, 1]; 1 is the average reward.
        tolerance: how near to the limit to stop, as a share of Q's size.
        iterations: how many regressions at most.
        steps: for networks, how many updates.
        members: for networks, of how many the mean is taken.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("episodic"), np.tile([0.1, 0.9], (13, 1))
        >>> data = mdp.sample(5000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> first, second = gd.FQE(0.9), gd.LSTDQ(0.9)
        >>> values = [
        ...     gd.evaluate(data, gd.TabularPolicy(target), estimator).value
        ...     for estimator in (first, second)
        ... ]
        >>> bool(np.isclose(*values))
        True
    """

    family = "value function"
    reference = "Le, Voloshin and Yue, ICML 2019"
    takes_networks = True

    discount: float
    tolerance: float = 1e-12
    iterations: int = 100_000
    steps: int = 10_000
    members: int = 3

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)
        require_number("tolerance", self.tolerance, low=0, high=1)
        for name in ("iterations", "steps", "members"):
            require_count(name, getattr(self, name))

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """The value; with linear functions also the ratio that it implies, and influence values if it converged."""
        require_needs(self, problem, solver)
        return self._networks(problem) if isinstance(problem.functions, MLP) else self._linear(problem)

    def _linear(self, problem: Problem) -> Answer:
        """The iteration in a basis in which C = I, where it is θ ← c + Bᵀθ."""
        moments = problem.moments
        used = moments.for_discount(self.discount)
        start = used.initial_for(self.discount)
        basis = whitening(used.gram, used.rank_tolerance)
        step, reward = self.discount * basis.T @ used.next_gram.T @ basis, basis.T @ used.reward
        level = np.zeros(len(reward))
        if self.discount == 1:
            level = _constant(basis, used.mean)
            keep = np.eye(len(level)) - np.outer(level, level)
            relative, first = keep @ step, keep @ reward
        else:
            relative, first = step, reward
        radius = float(np.abs(np.linalg.eigvals(relative)).max())
        theta, count = self._iterate(relative, first, radius)
        value = float(start @ basis @ theta) + float(level @ (reward + step @ theta))
        stats = {
            "spectral_radius": radius,
            "iterations": float(count),
            "rank": basis.shape[1],
            "num_features": used.num_features,
        }
        converged = radius < 1 and count < self.iterations
        critic, functions = basis @ theta, describe(problem.rows.functions)
        if not converged:
            status, nothing = Status.NOT_CONVERGED, np.zeros(used.num_features)
            note = f"the spectral radius of the regression's step is {radius:.6g}; LSTDQ solves for its fixed point"
            solution = Solution(nothing, critic, 0.0, status, stats)
            return Answer(value=value, functions=functions, status=status, solution=solution, notes=(note,))
        fit = ClosedForm().fit_moments(same_flow(self.discount), moments)
        shares = influence(fit, problem.rows)
        solution = replace(fit.solution, critic_params=critic, stats={**fit.solution.stats, **stats})
        return Answer(
            value=value,
            influence=shares,
            ratio=problem.row_share(self.discount) * shares.ratio,
            solution=solution,
            evidence=Evidence(mean_ratio=fit.mean_ratio, bellman=True),
            functions=functions,
            status=fit.solution.status,
            notes=misfit_notes(problem),
        )

    def _iterate(self, step: np.ndarray, first: np.ndarray, radius: float) -> tuple[np.ndarray, int]:
        """The last iterate, and how many there were."""
        theta = np.zeros(len(first))
        largest = LARGEST_GROWTH * max(1.0, float(np.linalg.norm(first)))
        # What is still to come after a change along the slowest direction is that over 1 − radius.
        left = 1 - radius if radius < 1 else 0.0
        for count in range(self.iterations):
            following = first + step @ theta
            change, size = float(np.linalg.norm(following - theta)), float(np.linalg.norm(following))
            theta = following
            if change <= left * max(self.tolerance, np.finfo(np.float64).eps) * size or size > largest:
                return theta, count
        return theta, self.iterations

    def _networks(self, problem: Problem) -> Answer:
        """The mean of several networks, without an interval."""
        from gradientdice.dice.stochastic.fitted_q import FittedQ, member_seeds
        from gradientdice.dice.stochastic.sources import NetworkSource
        from gradientdice.estimators.doubly_robust.network_scores import (
            average_reward,
            expected_output,
            scored_q,
            simulated_discount,
            value_bounds,
            without_level,
        )

        functions, seed = problem.functions, problem.seed
        assert isinstance(functions, MLP)
        inputs, level = problem.inputs, 0.0
        if self.discount == 1:
            rewards, level = without_level(problem.data)
            inputs = replace(inputs.without_absorbing(), rewards=rewards)
        log = NetworkSource.create(inputs, self.discount)
        seeds = member_seeds(seed, self.members)
        training = FittedQ(steps=self.steps, bounded=True)
        trained = simulated_discount(self.discount)
        (layers,) = training.fit(functions, [log], trained, seeds, progress=problem.progress)
        bounds = value_bounds(problem.data, trained, level)
        if self.discount == 1:
            value = level + average_reward(scored_q([layers], inputs, problem.folds(1), self.members, bounds), inputs)
        else:
            assert inputs.initial is not None and inputs.initial_weights is not None
            values = expected_output(layers, inputs.initial, inputs.initial_weights, self.members, bounds)
            value = (1 - self.discount) * float(np.average(values, weights=inputs.start_shares))
        if not math.isfinite(value):
            raise InputError("FQE's networks left the range of finite numbers: scale the rewards to size 1.")
        note = (
            "networks have no influence values and FQE has no ratio; GradientDICE with the same functions gives a "
            "doubly robust answer with an interval"
        )
        return Answer(value=value, functions=repr(functions), notes=(note, *training.warning(trained)))


def _constant(basis: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The constant's coefficients in a white basis: E[x]."""
    level = basis.T @ mean
    if 1 - level @ level > CONSTANT_OUTSIDE:
        raise InputError("At discount 1 FQE needs a constant among the features: LinearFeatures(…, intercept=True).")
    return level / np.linalg.norm(level)
