"""LSTDQ: the Q in the span of the features whose Bellman residual is orthogonal to them,

    θ = A⁻ᵀ c,   A = E[x (x − γx̄')ᵀ]ᵀ,   c = E[x r],   ρ = (1−γ) bᵀθ,   b = E_μ0[x̄].

Its value is that of the ratio xᵀw with Aw = (1−γ)b, the same that GradientDICE has when a constant is among the
features. At γ = 1 the differential Q and the average reward are found together, from r − ρ + x̄'ᵀθ = xᵀθ.

References:
    Lagoudakis and Parr, Least-Squares Policy Iteration, JMLR 2003.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gradientdice.base.errors import require_number
from gradientdice.dice.closed_form import ClosedForm
from gradientdice.dice.saddle import Solver
from gradientdice.estimators.answer import Answer, Declares
from gradientdice.estimators.needs import require_needs
from gradientdice.estimators.saddle.dual_dice import DualDICE
from gradientdice.estimators.saddle.estimator import linear_answer
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.problem.problem import Problem


@dataclass(frozen=True)
class LSTDQ(Declares):
    """Least-squares temporal differences for Q.

    Attributes:
        discount: γ in [0, 1].

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("episodic"), np.tile([0.1, 0.9], (13, 1))
        >>> data = mdp.sample(5000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> first, second = gd.LSTDQ(0.9), gd.GradientDICE(0.9)
        >>> values = [
        ...     gd.evaluate(data, gd.TabularPolicy(target), estimator).value
        ...     for estimator in (first, second)
        ... ]
        >>> bool(np.isclose(*values))
        True
    """

    family = "value function"
    reference = "Lagoudakis and Parr, JMLR 2003"
    from_sums = True

    discount: float

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """The value, with the ratio that it implies and its influence values."""
        require_needs(self, problem, solver)
        return linear_answer(same_flow(self.discount), problem, ClosedForm())


def same_flow(discount: float) -> DualDICE | GradientDICE:
    """The estimator with nothing but the flow equations, Aw = (1−γ)b, whose adjoint is LSTDQ's θ.

    Below discount 1 that is DualDICE. At 1, where Aw = 0 leaves the ratio's size open, it is GradientDICE with the hard
    constraint E[τ] = 1, whose multiplier is the average reward.
    """
    return GradientDICE(1.0, norm_penalty=math.inf) if discount == 1 else DualDICE(discount, power=2.0)
