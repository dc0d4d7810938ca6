"""A Q-function for estimators that correct one along trajectories: LSTDQ's, of fits that did not see the episode.

The estimators are linear in Q, so that to first order the noise of its parameters θ_k, fitted without fold k, reaches
the value through the derivative G_k with respect to them:

    θ_k − θ ≈ A_k⁻ᵀ E_k[x (r + γV' − Q)],   G_kᵀ(θ_k − θ) ≈ E_k[(xᵀu_k)(r + γV' − Q)]   with   A_k u_k = G_k.

Where all episodes end, G_k is 0 but for noise, whatever Q is: that is what makes these estimators doubly robust. Where
a time limit cuts them and V is used for what follows, it is not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from gradientdice.dice.closed_form import ClosedForm
from gradientdice.dice.solution import Solution
from gradientdice.estimators.doubly_robust.cross_fit import CrossFit, cross_fit
from gradientdice.estimators.needs import require_linear_functions
from gradientdice.estimators.saddle.dual_dice import DualDICE
from gradientdice.functions import FeatureMap
from gradientdice.problem.moments import weighted_sum
from gradientdice.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class CrossFittedQ:
    """LSTDQ's Q on folds of episodes.

    Attributes:
        fitted: the fits, one for each fold left out. The log's initial states are its episodes' first states, and of
            the scores `residual` is r + γV' − Q, with V = 0 after an end.
    """

    fitted: CrossFit

    @classmethod
    def of(cls, name: str, problem: Problem, discount: float, count: int) -> CrossFittedQ:
        """Fits Q on all but one of `count` folds, for each of them."""
        require_linear_functions(name, problem)
        own = problem.on(replace(problem.data, initial_states=None))
        # χ²-DualDICE's adjoint is LSTDQ's Q.
        (fitted,) = cross_fit(own, [DualDICE(discount, power=2.0)], count)
        return cls(fitted)

    @property
    def residual(self) -> Float[np.ndarray, " n"]:
        """R + γV' − Q of each row."""
        return self.fitted.scores.residual

    @property
    def first_values(self) -> Float[np.ndarray, " E"]:
        """V at each episode's first state."""
        values = self.fitted.scores.initial_value
        assert values is not None
        return values

    @property
    def functions(self) -> FeatureMap:
        """The functions of Q."""
        return self.fitted.rows.functions

    @property
    def solution(self) -> Solution:
        """The worst conditioned of the fits."""
        return self.fitted.worst.solution

    def shares(self, rows: Float[np.ndarray, " n"], firsts: Float[np.ndarray, " E"]) -> Float[np.ndarray, " n"]:
        """Each row's share, through the fits, in the error of Σ rows · (r + γV' − Q) + Σ firsts · V(s0)."""
        log, folds, fits = self.fitted.rows, self.fitted.folds, self.fitted.fits
        discount, width, count = fits[0].discount, log.width, folds.count
        gradients = np.zeros((count, width))
        for chunk, design in log.chunks():
            for fold in range(count):
                own = np.where(folds.rows[chunk] == fold, rows[chunk], 0.0)
                gradients[fold] += discount * weighted_sum(design.following, own, width)
                gradients[fold] -= weighted_sum(design.current, own, width)
        assert log.initial is not None
        for fold in range(count):
            own = np.where(folds.initial == fold, firsts, 0.0)
            gradients[fold] += weighted_sum(log.initial, own, width)
        solver, estimator = ClosedForm(), DualDICE(discount, power=2.0)
        # Its ratio solves Au = (1−γ)b: with this b, u_k.
        carriers = [
            solver.fit_moments(estimator, replace(fit.moments, initial=gradient / (1 - discount))).solution.ratio_params
            for fit, gradient in zip(fits, gradients, strict=True)
        ]
        carrier, theta = np.column_stack(carriers), np.column_stack([fit.adjoint.critic for fit in fits])
        totals = np.array([fit.moments.weight for fit in fits])
        shares = np.empty(len(rows))
        for chunk, design in log.chunks():
            after, now = design.following.predict(theta), design.current.predict(theta)
            residual = design.rewards[:, None] + discount * np.asarray(after) - np.asarray(now)
            seen = folds.rows[chunk][:, None] != np.arange(count)
            moved = seen * np.asarray(design.current.predict(carrier)) * residual / totals
            shares[chunk] = design.weights * moved.sum(axis=1)
        return shares
