"""MWL, minimax weight learning: the ratio whose flow is conserved for every function f of an RKHS,

    min_w  sup_{‖f‖ ≤ 1} ( E[w (f − γf̄')] − (1−γ) E_μ0[f̄] )²  =  min_w ‖ E[w (z − γz̄')] − (1−γ) E_μ0[z̄] ‖²,

for the kernel ⟨z, z'⟩ of the discriminator's features z. With w = x·α it is least squares: with F = E[(z − γz̄') xᵀ] and
b = E_μ0[z̄], α minimises ‖Fα − (1−γ)b‖². The value is E[w r], or E[w r] / E[w] if it is to be self-normalised.
At γ = 1 nothing sets the size of w, and E[w] = 1 is a hard constraint.

If the ratio's and the discriminator's features are the same and F is invertible, all violations vanish and the answer
is LSTDQ's. It is the target's value if the true ratio is in the span of x, or else if Q is in that of z and the
violations vanish.

References:
    Uehara, Huang and Jiang, Minimax Weight and Q-Function Learning for Off-Policy Evaluation, ICML 2020, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradientdice.base.errors import InputError, require_flag, require_number
from gradientdice.dice.closed_form import whitening
from gradientdice.dice.linear_systems import FactoredLeastSquares
from gradientdice.dice.saddle import LeastSquares, Solver
from gradientdice.dice.solution import Solution
from gradientdice.estimators.answer import Answer, Declares
from gradientdice.estimators.minimax.pairing import Pairing
from gradientdice.estimators.needs import require_needs
from gradientdice.estimators.saddle.estimator import misfit_notes
from gradientdice.functions import LinearFunctions
from gradientdice.problem.entrance import require_functions
from gradientdice.problem.problem import Problem, describe
from gradientdice.statistics.evidence import Evidence


@dataclass(frozen=True)
class MWL(Declares):
    """Minimax weight learning.

    Attributes:
        discount: γ in [0, 1]; 1 is the average reward.
        discriminator: whose features test the ratio; by default the ratio's own. Random Fourier or Nyström features
            approximate a kernel in O(nK) memory. There must be at least as many as the ratio has.
        self_normalize: whether to divide the value by the mean of w. With a constant among the discriminator's
            features and w able to answer it that mean is 1 already, as it always is at discount 1.
        rank_tolerance: directions of the ratio's features with less than this share of the largest are dropped; None
            leaves it to the function class.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = gd.mdp.boyan_chain("episodic"), np.tile([0.1, 0.9], (13, 1))
        >>> data = mdp.sample(5000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> first, second = gd.MWL(0.9), gd.LSTDQ(0.9)
        >>> values = [
        ...     gd.evaluate(data, gd.TabularPolicy(target), estimator).value
        ...     for estimator in (first, second)
        ... ]
        >>> bool(np.isclose(*values))
        True
    """

    family = "minimax"
    reference = "Uehara, Huang and Jiang, ICML 2020"

    discount: float
    discriminator: LinearFunctions | None = None
    self_normalize: bool = False
    rank_tolerance: float | None = None

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)
        require_functions(self.discriminator, "discriminator")
        require_flag("self_normalize", self.self_normalize)
        if self.rank_tolerance is not None:
            require_number("rank_tolerance", self.rank_tolerance, low=0, high=1)

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """The value, with its ratio and its influence values."""
        require_needs(self, problem, solver)
        pairing = Pairing.create(problem, self.discount, critic=self.discriminator)
        return self._solved(problem, pairing)

    def _solved(self, problem: Problem, pairing: Pairing) -> Answer:
        """The least-squares problem and the sensitivity of its value to the data.

        With e = (1−γ)b − Fα, M = FᵀF, q = M⁻¹c and p = Fq (within the constraint, if there is one, whose multipliers
        for α and q are η and s),

            IF = (xᵀα)r + (xᵀq)(δᵀe) − (δᵀp)(xᵀα) − η(xᵀq) − s(xᵀα) − mean,

        and b adds (1−γ)pᵀb; where episodes restart it is (p E[1{ended}xᵀα] − e E[1{ended}xᵀq])ᵀb. Self-normalised,
        (c − ρv) / E[w] takes the place of c, and r − ρ that of r.
        """
        tolerance = pairing.ratio.functions.rank_tolerance if self.rank_tolerance is None else self.rank_tolerance
        basis = whitening(pairing.ratio_gram, tolerance)
        matrix, mean = pairing.flow @ basis, basis.T @ pairing.mean
        if len(matrix) < matrix.shape[1]:
            raise InputError(
                f"MWL's discriminator has {len(matrix)} features and the ratio {matrix.shape[1]}: the ratio is not "
                "unique. Give a discriminator with at least as many, or fewer functions."
            )
        average = self.discount == 1
        factored = FactoredLeastSquares(LeastSquares(matrix, pairing.start, mean if average else None))
        params = factored.solution
        size = float(mean @ params)
        divide = self.self_normalize and not average
        if divide and size == 0:
            raise InputError("The ratio's mean is 0, and nothing can be divided by it: leave self_normalize out.")
        norm = size if divide else 1.0
        reward = basis.T @ pairing.reward
        value = float(reward @ params) / norm
        level = value if divide else 0.0
        effective = (reward - level * mean) / norm
        q, e = factored.apply_inverse(effective), pairing.start - matrix @ params
        p = matrix @ q
        length = float(mean @ mean) or 1.0
        force = float(mean @ (matrix.T @ e)) / length if average else 0.0
        adjoint = float(mean @ (effective - matrix.T @ p)) / length if average else 0.0

        weights, critic = np.column_stack([basis @ params, basis @ q]), np.column_stack([p, e])
        (tau, slope), _, (change, flow) = (part.T for part in pairing.over_rows(weights, critic))
        rewards = pairing.ratio.data.rewards
        raw = tau * (rewards - level) / norm + slope * flow - change * tau - force * slope - adjoint * tau
        direction = (1 - self.discount) * p
        if pairing.restarts:
            direction = p * float(pairing.ended @ weights[:, 0]) - e * float(pairing.ended @ weights[:, 1])
        shares = pairing.shares(raw, direction, tau, rewards - level - norm * change - adjoint)
        stats = {
            "condition_number": factored.condition_number,
            "rank": basis.shape[1],
            "num_features": len(pairing.mean),
            "discriminators": len(matrix),
        }
        solution = Solution(weights[:, 0] / norm, e, force, factored.status, stats)
        return Answer(
            value=value,
            influence=shares,
            ratio=problem.row_share(self.discount) * tau / norm,
            solution=solution,
            evidence=Evidence(mean_ratio=size / norm, bellman=True),
            functions=describe(pairing.ratio.functions),
            status=factored.status,
            notes=misfit_notes(problem),
        )
