"""Importance sampling over trajectories: with β = π(a|s)/μ(a|s) and β_{0:t} its product up to time t, of n episodes

    IS     (1−γ)/n Σ_i βⁱ_{0:T−1} Σ_t γᵗ rⁱ_t,        PDIS   (1−γ)/n Σ_i Σ_t γᵗ βⁱ_{0:t} rⁱ_t,
    WIS    IS with Σ_i βⁱ_{0:T−1} in the place of n,   WPDIS  PDIS with Σ_i βⁱ_{0:t} in the place of n, at each t.

IS and PDIS are unbiased; WIS and WPDIS are biased by O(1/n), with less variance. An episode that ended counts with its
last product and reward 0 from then on. One that was cut by a time limit counts in the same way, so that what follows
the cut is missing: cut after H steps, the value is that of the first H steps, and a share γ^H of the discounted time is
not in it. A reward that is c larger at every logged row then adds c(1 − γ^H), exactly so for WIS and WPDIS.

They need whole trajectories, discrete actions, μ's probabilities (logged, or estimated by `BehaviorCloning`), and a
discount below 1. Weights may differ between episodes, not within one.

References:
    Precup, Sutton and Singh, Eligibility Traces for Off-Policy Policy Evaluation, ICML 2000, and Precup, Sutton and
    Dasgupta, Off-Policy Temporal-Difference Learning with Function Approximation, ICML 2001. Normalisation at each
    time over all episodes: Thomas, Safe Reinforcement Learning, 2015.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gradientdice.base.errors import require_number
from gradientdice.dice.saddle import Solver
from gradientdice.estimators.answer import Answer, Declares
from gradientdice.estimators.behavior import (
    Episodes,
    behavior_notes,
    importance_ratios,
    ratio_cautions,
    ratio_mean,
    require_behavior,
)
from gradientdice.estimators.behavior_cloning import BehaviorCloning
from gradientdice.estimators.needs import require_needs
from gradientdice.estimators.trajectory.step_weights import StepWeights
from gradientdice.log.transitions import Transitions
from gradientdice.problem.problem import Problem
from gradientdice.statistics.evidence import Evidence
from gradientdice.statistics.influence import Influence

# The share of the discounted time that may be missing before the verdict says so.
MISSING_TIME = 0.01


@dataclass(frozen=True)
class _Importance(Declares):
    """What the four share."""

    family = "trajectories"
    discounted_only = True
    needs_behavior = True
    whole_trajectories = True
    uses_functions = False

    discount: float
    behavior: BehaviorCloning | None = None

    whole: ClassVar[bool]
    normalised: ClassVar[bool]

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)
        require_behavior(self.behavior)

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """The value, the weight of each row's reward, and its influence values. It uses no functions."""
        require_needs(self, problem, solver)
        name, data = type(self).__name__, problem.data
        episodes = Episodes.of(name, data)
        ratios = importance_ratios(name, data, problem.policy, self.behavior)
        weights = StepWeights.of(name, self.discount, episodes, ratios, normalised=self.normalised, whole=self.whole)
        ratio = weights.ratio(data.row_weights)
        return Answer(
            value=weights.total(data.rewards),
            influence=Influence(weights.shares(data.rewards), None, ratio, data.rewards),
            ratio=ratio,
            evidence=Evidence(
                mean_ratio=self._mean_ratio(data, ratios, weights), density=weights.density, markov=False
            ),
            notes=(*behavior_notes(data, self.behavior), *_cut_notes(weights)),
            cautions=(*_cut_cautions(weights), *ratio_cautions(data, ratios)),
        )

    def _mean_ratio(self, data: Transitions, ratios: np.ndarray, weights: StepWeights) -> float:
        """The mean weight. Normalised weights always have mean 1: then that of the ratios, if it cannot be 1."""
        if self.normalised and ratio_cautions(data, ratios):
            return ratio_mean(ratios, data.row_weights)[0]
        return weights.mean_ratio(also_cut=False)


def _cut_notes(weights: StepWeights) -> tuple[str, ...]:
    cut = int((~weights.episodes.terminated).sum())
    if not cut:
        return ()
    return (
        f"{cut} of {len(weights.episodes)} episodes were cut: the value is that of the steps before the cut, and "
        f"{weights.cut_mass:.3g} of the discounted time is missing from it",
    )


def _cut_cautions(weights: StepWeights) -> tuple[str, ...]:
    """A little of the discounted time may be missing; more makes it another value."""
    if weights.cut_mass <= MISSING_TIME:
        return ()
    return (
        f"{weights.cut_mass:.2g} of the discounted time is missing from the value, behind time limits; what would "
        "help: longer episodes, or an estimator with a Q",
    )


@dataclass(frozen=True)
class IS(_Importance):
    """Importance sampling: each episode's return, weighted by the product of all its ratios.

    Attributes:
        discount: γ, below 1.
        behavior: how to estimate μ where the log does not have it.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("continuing"), np.tile([0.4, 0.6], (13, 1))
        >>> data = mdp.rollout(
        ...     np.full((13, 2), 0.5), episodes=500, horizon=10, rng=np.random.default_rng(0)
        ... )
        >>> estimate = gd.evaluate(data, gd.TabularPolicy(target), gd.IS(0.5))
        >>> low, high = estimate.interval
        >>> bool(low < mdp.value(target, 0.5) < high)
        True
    """

    reference = "Precup, Sutton and Singh, ICML 2000"

    whole: ClassVar[bool] = True
    normalised: ClassVar[bool] = False


@dataclass(frozen=True)
class PDIS(_Importance):
    """Per-decision importance sampling: each reward weighted by the ratios up to it.

    Attributes:
        discount: γ, below 1.
        behavior: how to estimate μ where the log does not have it.

    Example:
        >>> import gradientdice as gd
        >>> gd.PDIS(0.9, behavior=gd.BehaviorCloning()).discount
        0.9
    """

    reference = "Precup, Sutton and Singh, ICML 2000"

    whole: ClassVar[bool] = False
    normalised: ClassVar[bool] = False


@dataclass(frozen=True)
class WIS(_Importance):
    """Weighted importance sampling: the mean of the episodes' returns under normalised products.

    Attributes:
        discount: γ, below 1.
        behavior: how to estimate μ where the log does not have it.

    Example:
        >>> import gradientdice as gd
        >>> gd.WIS(0.9).behavior is None
        True
    """

    reference = "Precup, Sutton and Singh, ICML 2000"

    whole: ClassVar[bool] = True
    normalised: ClassVar[bool] = True


@dataclass(frozen=True)
class WPDIS(_Importance):
    """Weighted per-decision importance sampling: the mean reward at each time under products normalised there.

    Attributes:
        discount: γ, below 1.
        behavior: how to estimate μ where the log does not have it.

    Example:
        >>> import gradientdice as gd
        >>> gd.WPDIS(0.9).behavior is None
        True
    """

    reference = "Thomas, thesis 2015"

    whole: ClassVar[bool] = False
    normalised: ClassVar[bool] = True
