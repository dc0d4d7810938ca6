"""Fitted Q evaluation: regression of Q on r + γQ̄' again and again,

    θ ← C⁻¹ (c + γ E[x x̄'ᵀ] θ),   C = E[x xᵀ],   c = E[x r],   value (1−γ) E_μ0[Q̄],

from θ = 0. Where it converges the limit is LSTDQ's, and so are its influence values. It converges if and only if the
spectral radius of γ C⁻¹ E[x x̄'ᵀ] is below 1: always for a table, not always for features off-policy. At γ = 1 the
regression is on r + Q̄' less its mean over the log, which is the average reward in the limit; this needs a constant
among the features, and a chain that does not go round in periods.

With `functions=MLP(…)` the regression is done by networks on minibatches, with a slowly following copy for Q̄'.

References:
    Le, Voloshin and Yue, Batch Policy Learning under Constraints, ICML 2019, algorithm 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError, require_count, require_number
from gradientdice.estimators import DualDICE, GradientDICE
from gradientdice.functions.design import Functions
from gradientdice.functions.mlp import MLP
from gradientdice.functions.stream import LogDesign
from gradientdice.inference.direct import DirectAnswer
from gradientdice.inference.influence import influence
from gradientdice.inference.linear import describe
from gradientdice.moments import Moments
from gradientdice.policies import Policy
from gradientdice.related.mql import CONSTANT_OUTSIDE
from gradientdice.related.needs import linear_functions, misfit_notes
from gradientdice.solvers.closed_form import ClosedForm, whitening
from gradientdice.solvers.solution import Solution
from gradientdice.solvers.status import Status

# Iterates that have grown so much against the first are on their way to infinity.
LARGEST_GROWTH = 1e12


@dataclass(frozen=True)
class FQE:
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
        >>> values = [gd.evaluate(data, gd.TabularPolicy(target), estimator).value for estimator in (first, second)]
        >>> bool(np.isclose(*values))
        True
    """

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

    def answer(self, data: Transitions, policy: Policy, functions: Functions | MLP, seed: int) -> DirectAnswer:
        """The value; with linear functions also the ratio that it implies, and influence values if it converged."""
        if isinstance(functions, MLP):
            return self._networks(data, policy, functions, seed)
        log = LogDesign(data, policy, linear_functions("FQE", functions), seed=seed)
        return self._linear(log)

    def _linear(self, log: LogDesign) -> DirectAnswer:
        """The iteration in a basis in which C = I, where it is θ ← c + Bᵀθ."""
        moments = Moments.from_design(log)
        used = moments.for_discount(self.discount)
        start = used.initial_for(self.discount)
        basis = whitening(used.gram, ClosedForm().rank_tolerance)
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
        critic, functions = basis @ theta, describe(log.functions)
        if not converged:
            status, nothing = Status.NOT_CONVERGED, np.zeros(used.num_features)
            note = f"the spectral radius of the regression's step is {radius:.6g}; LSTDQ solves for its fixed point"
            solution = Solution(nothing, critic, 0.0, status, stats)
            return DirectAnswer(value, functions=functions, status=status, solution=solution, notes=(note,))
        same = GradientDICE(1.0, norm_penalty=math.inf) if self.discount == 1 else DualDICE(self.discount, power=2.0)
        fit = ClosedForm().fit(same, moments)
        shares = influence(fit, log)
        solution = replace(fit.solution, critic_params=critic, stats={**fit.solution.stats, **stats})
        share = 1 - (fit.moments.absorbing_weight or 0.0) / fit.moments.weight
        return DirectAnswer(
            value,
            share * shares.ratio,
            fit.mean_ratio,
            shares,
            functions,
            fit.solution.status,
            solution,
            misfit_notes(log.functions),
            bellman=True,
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

    def _networks(self, data: Transitions, policy: Policy, functions: MLP, seed: int) -> DirectAnswer:
        """The mean of several networks, without an interval."""
        from gradientdice.functions.inputs import network_inputs
        from gradientdice.inference.neural import expected_output
        from gradientdice.solvers.neural.fitted_q import FittedQ
        from gradientdice.solvers.neural.training import NeuralData

        inputs = network_inputs(data, policy, functions.draws, np.random.default_rng(seed))
        if self.discount == 1:
            inputs = inputs.without_absorbing()
        log = NeuralData.create(inputs, self.discount)
        seeds = np.arange(self.members, dtype=np.uint32) + np.uint32(1000 * seed)
        layers, rho = FittedQ(steps=self.steps).fit(functions, log, self.discount, seeds)
        if self.discount == 1:
            value = float(rho.mean())
        else:
            assert inputs.initial is not None and inputs.initial_weights is not None
            values = expected_output(layers, inputs.initial, inputs.initial_weights, self.members)
            value = (1 - self.discount) * float(values.mean())
        if not math.isfinite(value):
            raise InputError("FQE's networks left the range of finite numbers: scale the rewards to size 1.")
        note = (
            "networks have no influence values and FQE has no ratio; GradientDICE with the same functions gives a "
            "doubly robust answer with an interval"
        )
        return DirectAnswer(value, functions=repr(functions), notes=(note,))


def _constant(basis: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The constant's coefficients in a white basis: E[x]."""
    level = basis.T @ mean
    if 1 - level @ level > CONSTANT_OUTSIDE:
        raise InputError("At discount 1 FQE needs a constant among the features: LinearFeatures(…, intercept=True).")
    return level / np.linalg.norm(level)
