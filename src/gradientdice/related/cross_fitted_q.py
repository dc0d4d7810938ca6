"""A Q-function for estimators that correct one along trajectories: LSTDQ's, of fits that did not see the episode.

The estimators are linear in Q, so that to first order the noise of its parameters θ_k, fitted without fold k, reaches
the value through the derivative G_k with respect to them:

    θ_k − θ ≈ A_k⁻ᵀ E_k[x (r + γV' − Q)],   G_kᵀ(θ_k − θ) ≈ E_k[(xᵀu_k)(r + γV' − Q)]   with   A_k u_k = G_k.

Where all episodes end, G_k is 0 but for noise, whatever Q is: that is what makes these estimators doubly robust. Where
a time limit cuts them and V stands for what follows, it is not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from gradientdice.data.transitions import Transitions
from gradientdice.errors import InputError
from gradientdice.estimators import DualDICE
from gradientdice.functions.design import Functions
from gradientdice.functions.kernel import FittedKernel
from gradientdice.functions.mlp import MLP
from gradientdice.functions.stream import LogDesign
from gradientdice.inference.automatic import RANK_TOLERANCE
from gradientdice.inference.folds import Folds, HeldOut, fold_fits, fold_moments, held_out
from gradientdice.moments import weighted_sum
from gradientdice.policies import Policy
from gradientdice.related.needs import linear_functions
from gradientdice.solvers.closed_form import ClosedForm, LinearFit


def closed_form_for(log: LogDesign) -> ClosedForm:
    """The solver: kernel features are many and nearly collinear."""
    return ClosedForm(RANK_TOLERANCE) if isinstance(log.functions, FittedKernel) else ClosedForm()


@dataclass(frozen=True, eq=False)
class CrossFittedQ:
    """LSTDQ's Q on folds of episodes.

    Attributes:
        log: the log, whose initial states are its episodes' first states.
        folds: the fold of each row and of each episode.
        fits: one for each fold left out.
        scores: what they say about the fold left out: `residual` is r + γV' − Q, with V = 0 after an end, and
            `initial_value` is V at each episode's first state.
    """

    log: LogDesign
    folds: Folds
    fits: list[LinearFit]
    scores: HeldOut

    @classmethod
    def of(
        cls,
        name: str,
        data: Transitions,
        policy: Policy,
        functions: Functions | MLP,
        discount: float,
        count: int,
        seed: int,
    ) -> CrossFittedQ:
        """Fits Q on all but one of `count` folds, for each of them."""
        own = replace(data, initial_states=None)
        log = LogDesign(own, policy, linear_functions(name, functions), seed=seed)
        folds = Folds.create(own, count, seed)
        log = log.without_any(folds.rows)
        try:
            moments = fold_moments(log, folds)
        except InputError as error:
            raise InputError(f"{name} fits Q with a part of the log left out, and then: {error}") from error
        # χ²-DualDICE's adjoint is LSTDQ's Q.
        fits = fold_fits(moments, [DualDICE(discount, power=2.0)], closed_form_for(log))
        return cls(log, folds, fits[0], held_out(log, folds, fits)[0])

    @property
    def first_values(self) -> Float[np.ndarray, " E"]:
        """V at each episode's first state."""
        assert self.scores.initial_value is not None
        return self.scores.initial_value

    @property
    def worst(self) -> LinearFit:
        """The worst conditioned of the fits."""
        return max(self.fits, key=lambda fit: fit.solution.stats["condition_number"])

    def shares(self, rows: Float[np.ndarray, " n"], firsts: Float[np.ndarray, " E"]) -> Float[np.ndarray, " n"]:
        """Each row's share, through the fits, in the error of Σ rows · (r + γV' − Q) + Σ firsts · V(s0)."""
        discount, width, count = self.fits[0].discount, self.log.first.width, self.folds.count
        gradients = np.zeros((count, width))
        for chunk, design in self.log.chunks():
            for fold in range(count):
                own = np.where(self.folds.rows[chunk] == fold, rows[chunk], 0.0)
                gradients[fold] += discount * weighted_sum(design.following, own, width)
                gradients[fold] -= weighted_sum(design.current, own, width)
        assert self.log.initial is not None
        for fold in range(count):
            own = np.where(self.folds.initial == fold, firsts, 0.0)
            gradients[fold] += weighted_sum(self.log.initial, own, width)
        solver, estimator = closed_form_for(self.log), DualDICE(discount, power=2.0)
        # Its ratio solves Au = (1−γ)b: with this b, u_k.
        carriers = [
            solver.fit(estimator, replace(fit.moments, initial=gradient / (1 - discount))).solution.ratio_params
            for fit, gradient in zip(self.fits, gradients, strict=True)
        ]
        carrier, theta = np.column_stack(carriers), np.column_stack([fit.adjoint.critic for fit in self.fits])
        totals = np.array([fit.moments.weight for fit in self.fits])
        shares = np.empty(len(rows))
        for chunk, design in self.log.chunks():
            after, now = design.following.predict(theta), design.current.predict(theta)
            residual = design.rewards[:, None] + discount * np.asarray(after) - np.asarray(now)
            seen = self.folds.rows[chunk][:, None] != np.arange(count)
            moved = seen * np.asarray(design.current.predict(carrier)) * residual / totals
            shares[chunk] = design.weights * moved.sum(axis=1)
        return shares
