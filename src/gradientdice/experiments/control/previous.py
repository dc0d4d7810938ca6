"""The default of version 0.1, kept to be compared with: searched kernel features, doubly robust.

ρ̂ = (1−γ) E_μ0[V] + E[τ (r + γV' − Q)],     at γ = 1:  E[τ (r + V' − Q)] / E[τ].
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gradientdice.estimators.answer import Answer, refuse_solver
from gradientdice.estimators.doubly_robust.search import FunctionSearch
from gradientdice.inference.flow import flow_residuals
from gradientdice.problem.problem import Problem
from gradientdice.solvers.saddle import Solver


@dataclass(frozen=True)
class PreviousDefault:
    """The chosen candidate of a search for kernel features.

    Attributes:
        discount: γ in [0, 1]; 1 is the average reward.
    """

    discount: float

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """The answer of the chosen candidate."""
        refuse_solver(self, solver)
        search = problem.chosen
        assert isinstance(search, FunctionSearch)
        chosen = search.chosen
        assert chosen.answer.ratio is not None
        ((flow, noise),) = flow_residuals(
            problem.data, problem.policy, self.discount, [chosen.answer.ratio], problem.seed
        )
        evidence = replace(
            chosen.answer.evidence,
            misfit=chosen.loss / chosen.noise if chosen.noise > 0 else 0.0,
            flow=flow / noise if noise > 0 else 0.0,
        )
        return replace(chosen.answer, evidence=evidence, functions=repr(chosen.functions), method=repr(self), notes=())
