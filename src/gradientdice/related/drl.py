"""DRL, double reinforcement learning: the efficient estimate from a ratio τ and a Q that did not see the row,

    ρ = (1−γ) E_μ0[V] + E[τ (r + γV' − Q)],     at γ = 1:  E[τ (r + V' − Q)] / E[τ].

τ and Q are GradientDICE's own pair, in closed form, of fits to the other folds of episodes (of rows, where there are no
episodes). The error is the product of τ's and Q's, so that it forgives what either misses. Single transitions suffice,
and the behaviour need not be known; weights and initial states are as for GradientDICE. At γ = 1 ended episodes
restart.

References:
    Kallus and Uehara, Double Reinforcement Learning for Efficient Off-Policy Evaluation in Markov Decision Processes,
    JMLR 2020.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError, require_count, require_number
from gradientdice.estimators import GradientDICE
from gradientdice.functions.design import Functions
from gradientdice.functions.mlp import MLP
from gradientdice.functions.stream import LogDesign
from gradientdice.functions.tabular import Tabular
from gradientdice.inference.direct import DirectAnswer
from gradientdice.inference.doubly_robust import doubly_robust
from gradientdice.inference.folds import Folds, fold_fits, fold_moments, held_out
from gradientdice.inference.linear import describe
from gradientdice.policies import Policy
from gradientdice.related.cross_fitted_q import closed_form_for
from gradientdice.related.needs import linear_functions


@dataclass(frozen=True)
class DRL:
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

    discount: float
    folds: int = 4

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)
        require_count("folds", self.folds, low=2)

    def answer(self, data: Transitions, policy: Policy, functions: Functions | MLP, seed: int) -> DirectAnswer:
        """The value, the ratio where it was not fitted, and its influence values."""
        log = LogDesign(data, policy, linear_functions("DRL", functions), seed=seed)
        folds = Folds.create(data, self.folds, seed)
        log = log.without_any(folds.rows)
        try:
            moments = fold_moments(log, folds)
        except InputError as error:
            raise InputError(f"DRL fits with a part of the log left out, and then: {error}") from error
        fits = fold_fits(moments, [GradientDICE(self.discount)], closed_form_for(log))
        found = doubly_robust(log, fits[0], held_out(log, folds, fits)[0])
        worst = max(fits[0], key=lambda fit: fit.solution.stats["condition_number"]).solution
        notes = ()
        if not isinstance(log.functions, Tabular):
            notes = ("the interval takes one of τ and Q to be right; it does not cover what both miss",)
        return DirectAnswer(
            value=found.value,
            ratio=found.shares.ratio,
            mean_ratio=float(np.mean([fit.mean_ratio for fit in fits[0]])),
            shares=found.shares,
            functions=describe(log.functions),
            status=worst.status,
            solution=worst,
            notes=notes,
            bellman=True,
        )
