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

from gradientdice.data.transitions import Transitions
from gradientdice.errors import require_number
from gradientdice.estimators import DualDICE, GradientDICE
from gradientdice.functions.design import Functions
from gradientdice.functions.mlp import MLP
from gradientdice.functions.stream import LogDesign
from gradientdice.inference.direct import DirectAnswer
from gradientdice.inference.linear import linear_answer
from gradientdice.policies import Policy
from gradientdice.related.needs import linear_functions
from gradientdice.solvers.closed_form import ClosedForm


@dataclass(frozen=True)
class LSTDQ:
    """Least-squares temporal differences for Q.

    Attributes:
        discount: γ in [0, 1].

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("episodic"), np.tile([0.1, 0.9], (13, 1))
        >>> data = mdp.sample(5000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> first, second = gd.LSTDQ(0.9), gd.GradientDICE(0.9)
        >>> values = [gd.evaluate(data, gd.TabularPolicy(target), estimator).value for estimator in (first, second)]
        >>> bool(np.isclose(*values))
        True
    """

    discount: float

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)

    def answer(self, data: Transitions, policy: Policy, functions: Functions | MLP, seed: int) -> DirectAnswer:
        """The value, with the ratio that it implies and its influence values."""
        log = LogDesign(data, policy, linear_functions("LSTDQ", functions), seed=seed)
        # Both solve Aw = (1−γ)b, whose adjoint is θ: DualDICE with nothing else, and at γ = 1, where Aw = 0 leaves the
        # ratio's size open, GradientDICE with the hard constraint E[τ] = 1, whose multiplier is the average reward.
        same = GradientDICE(1.0, norm_penalty=math.inf) if self.discount == 1 else DualDICE(self.discount, power=2.0)
        return linear_answer(log, same, ClosedForm())
