"""Doubly robust estimation along trajectories: with some Q, V(s) = Σ_a π(a|s)Q(s,a) and β = π/μ, backwards from the end

    V̂_t = V(s_t) + β_t (r_t + γV̂_{t+1} − Q(s_t,a_t)),   value = (1−γ) E[V̂_0],

which unrolls to (1−γ) E[V(s_0) + Σ_t γᵗ β_{0:t} (r_t + γV(s_{t+1}) − Q(s_t,a_t))]: per-decision importance sampling of
the Bellman residuals. WDR normalises β_{0:t} over the episodes at each t, at the price of a bias of O(1/n).

After an end V̂ is 0, and DR is unbiased for any Q that the episode had no part in. At a cut V̂ is V of the state that
follows, so that the value is that of the infinite horizon, not of the steps that the log shows; it then hangs on V
there, with a share γ^H of it. Q is LSTDQ's with the given functions, fitted to the other folds of episodes.

They need whole trajectories, discrete actions, μ's probabilities (logged, or estimated by `BehaviorCloning`), and a
discount below 1. Weights may differ between episodes, not within one.

References:
    Jiang and Li, Doubly Robust Off-policy Value Evaluation for Reinforcement Learning, ICML 2016; Thomas and
    Brunskill, Data-Efficient Off-Policy Policy Evaluation for Reinforcement Learning, ICML 2016. Both take the
    horizon to be the end, where V is 0; with a time limit that is not the end, that would be a bias.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gradientdice.base.errors import require_count, require_number
from gradientdice.dice.saddle import Solver
from gradientdice.estimators.answer import Answer, Declares
from gradientdice.estimators.behavior import (
    Episodes,
    behavior_notes,
    importance_ratios,
    ratio_cautions,
    require_behavior,
)
from gradientdice.estimators.behavior_cloning import BehaviorCloning
from gradientdice.estimators.doubly_robust.cross_fitted_q import CrossFittedQ
from gradientdice.estimators.needs import require_needs
from gradientdice.estimators.trajectory.step_weights import StepWeights
from gradientdice.problem.problem import Problem, describe
from gradientdice.statistics.evidence import Evidence
from gradientdice.statistics.influence import Influence


@dataclass(frozen=True)
class _DoublyRobust(Declares):
    """What the two share."""

    family = "trajectories"
    discounted_only = True
    needs_behavior = True
    whole_trajectories = True

    discount: float
    behavior: BehaviorCloning | None = None
    folds: int = 4

    normalised: ClassVar[bool]

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)
        require_behavior(self.behavior)
        require_count("folds", self.folds, low=2)

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """The value, the weight of each row's Bellman residual, and its influence values."""
        require_needs(self, problem, solver)
        name, data = type(self).__name__, problem.data
        weights, cautions = step_weights(name, self.discount, problem, self.behavior, self.normalised)
        q = CrossFittedQ.of(name, problem, self.discount, self.folds)
        residual, episodes = q.residual, weights.episodes
        firsts = (1 - self.discount) * episodes.weights / episodes.weights.sum()
        start = float(firsts @ q.first_values)
        shares = weights.shares(residual) + q.shares(weights.coefficients, firsts)
        shares[episodes.first] += firsts * q.first_values - start * episodes.weights / episodes.weights.sum()
        ratio = weights.ratio(data.row_weights)
        mean_ratio = weights.mean_ratio(also_cut=True)
        return Answer(
            value=start + weights.total(residual),
            influence=Influence(shares, None, ratio, residual),
            ratio=ratio,
            solution=q.solution,
            evidence=Evidence(mean_ratio=mean_ratio, density=weights.density, bellman=True, markov=False),
            functions=describe(q.functions),
            status=q.solution.status,
            notes=(*behavior_notes(data, self.behavior), *bootstrap_notes(weights)),
            cautions=cautions,
        )


def step_weights(
    name: str, discount: float, problem: Problem, behavior: BehaviorCloning | None, normalised: bool
) -> tuple[StepWeights, tuple[str, ...]]:
    """The per-decision weights of a log and why they may be wrong, or an error that says what it lacks."""
    episodes = Episodes.of(name, problem.data)
    ratios = importance_ratios(name, problem.data, problem.policy, behavior)
    weights = StepWeights.of(name, discount, episodes, ratios, normalised=normalised)
    return weights, ratio_cautions(problem.data, ratios)


def bootstrap_notes(weights: StepWeights) -> tuple[str, ...]:
    """What V does at a cut."""
    cut = int((~weights.episodes.terminated).sum())
    if not cut:
        return ()
    return (
        f"{cut} of {len(weights.episodes)} episodes were cut: V at the cut is used for what follows, with "
        f"{weights.cut_mass:.3g} of the discounted time, so that the value is that of the infinite horizon if V is "
        "right there",
    )


@dataclass(frozen=True)
class DR(_DoublyRobust):
    """The doubly robust estimate of Jiang and Li.

    Attributes:
        discount: γ, below 1.
        behavior: how to estimate μ where the log does not have it.
        folds: of episodes, for Q.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("continuing"), np.tile([0.4, 0.6], (13, 1))
        >>> data = mdp.rollout(
        ...     np.full((13, 2), 0.5), episodes=500, horizon=10, rng=np.random.default_rng(0)
        ... )
        >>> policy = gd.TabularPolicy(target)
        >>> first, second = (
        ...     gd.evaluate(data, policy, estimator) for estimator in (gd.DR(0.9), gd.IS(0.9))
        ... )
        >>> bool(first.standard_error < second.standard_error)
        True
    """

    reference = "Jiang and Li, ICML 2016"

    normalised: ClassVar[bool] = False


@dataclass(frozen=True)
class WDR(_DoublyRobust):
    """The weighted doubly robust estimate of Thomas and Brunskill.

    Attributes:
        discount: γ, below 1.
        behavior: how to estimate μ where the log does not have it.
        folds: of episodes, for Q.

    Example:
        >>> import gradientdice as gd
        >>> gd.WDR(0.9).folds
        4
    """

    reference = "Thomas and Brunskill, ICML 2016"

    normalised: ClassVar[bool] = True
