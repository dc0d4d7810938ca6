"""DRL, double reinforcement learning: the efficient estimate from a ratio τ and a Q that did not see the row,

    ρ = (1−γ) E_μ0[V] + E[τ (r + γV' − Q)],     at γ = 1:  E[τ (r + V' − Q)] / E[τ].

τ and Q are GradientDICE's own pair, in closed form, of fits to the other folds of episodes (of rows, where there are no
episodes). The error is the product of τ's error and Q's, so that one of them may be wrong. Single transitions suffice,
and the behaviour need not be known; weights and initial states are as for GradientDICE. At γ = 1 ended episodes
restart.

References:
    Kallus and Uehara, Double Reinforcement Learning for Efficient Off-Policy Evaluation in Markov Decision Processes,
    JMLR 2020.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradientdice.base.errors import require_count, require_number
from gradientdice.dice.saddle import Solver
from gradientdice.estimators.answer import Answer, Declares
from gradientdice.estimators.doubly_robust.combine import combine
from gradientdice.estimators.doubly_robust.cross_fit import CrossFit, cross_fit
from gradientdice.estimators.needs import require_needs
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.problem.problem import Problem, describe
from gradientdice.statistics.evidence import Evidence


@dataclass(frozen=True)
class DRL(Declares):
    """Cross-fitted double reinforcement learning.

    Attributes:
        discount: γ in [0, 1]; 1 is the average reward.
        folds: of episodes, or of rows.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("continuing"), np.tile([0.1, 0.9], (13, 1))
        >>> data = mdp.sample(20_000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> estimate = gd.evaluate(data, gd.TabularPolicy(target), gd.DRL(1.0))
        >>> low, high = estimate.interval
        >>> bool(low < mdp.value(target, 1.0) < high)
        True
    """

    family = "doubly robust"
    reference = "Kallus and Uehara, JMLR 2020"

    discount: float
    folds: int = 4

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)
        require_count("folds", self.folds, low=2)

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """The value, the ratio where it was not fitted, and its influence values."""
        require_needs(self, problem, solver)
        (fitted,) = cross_fit(problem, [GradientDICE(self.discount)], self.folds)
        return doubly_robust_answer(problem, fitted)


def doubly_robust_answer(problem: Problem, fitted: CrossFit) -> Answer:
    """The doubly robust answer of a cross-fit."""
    discount, worst = fitted.fits[0].discount, fitted.worst.solution
    scale = problem.row_share(discount)
    value, shares = combine(discount, problem.data, fitted.scores, scale)
    notes = ()
    if problem.support is None and not problem.is_searched:
        notes = ("the interval assumes that τ or Q is right; it does not cover the misfit of both",)
    return Answer(
        value=value,
        influence=shares,
        ratio=shares.ratio,
        solution=worst,
        evidence=Evidence(mean_ratio=fitted.mean_ratio, bellman=True),
        functions=describe(fitted.rows.functions),
        status=worst.status,
        notes=notes,
    )
