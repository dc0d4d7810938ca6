"""The default with nothing to tune: GradientDICE where the functions are known, else searched features, doubly robust,

    ρ̂ = (1−γ) E_μ0[V] + E[τ (r + γV' − Q)],     at γ = 1:  E[τ (r + V' − Q)] / E[τ].

With a table, or with functions that the user gives, the answer is GradientDICE's. On continuous states without
functions τ is that of kernel features of many bandwidths, with a ridge that is chosen, and Q the best combination of
several (`search.py`), all of fits that did not see the row.

References:
    Zhang, Liu and Whiteson, GradientDICE, ICML 2020; Kallus and Uehara, Double Reinforcement Learning, JMLR 2020.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gradientdice.base.errors import require_number
from gradientdice.default.search import FunctionSearch, Searching
from gradientdice.dice.saddle import Solver
from gradientdice.estimators.answer import Answer, Declares
from gradientdice.estimators.saddle.gradient_dice import GradientDICE
from gradientdice.problem.problem import Problem
from gradientdice.statistics.evidence import Evidence
from gradientdice.statistics.flow import flow_residuals


@dataclass(frozen=True)
class Automatic(Declares):
    """The untuned default.

    Attributes:
        discount: γ in [0, 1]; 1 is the average reward.

    Example:
        >>> import gradientdice as gd
        >>> gd.Automatic(0.99).discount
        0.99
    """

    family = "default"
    reference = "Zhang, Liu and Whiteson, ICML 2020"
    takes_networks = True
    takes_solver = True
    from_sums = True

    discount: float

    def __post_init__(self) -> None:
        require_number("discount", self.discount, low=0, high=1)

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """GradientDICE's answer, or that of the chosen candidate of a search."""
        if solver is not None or not problem.is_searched:
            plain = GradientDICE(self.discount)
            found = plain.answer(problem, solver)
            return found if found.method else replace(found, method=repr(plain))
        search = Searching(self.discount)(problem) if problem.search is None else problem.chosen
        assert isinstance(search, FunctionSearch)
        chosen = search.chosen
        return replace(
            chosen.answer,
            of_search=True,
            evidence=fit_evidence(problem, self.discount, chosen.answer, chosen.loss, chosen.noise),
            method=f"doubly robust GradientDICE(discount={self.discount:g}), cross-fitted",
            notes=(),
            cautions=search.cautions,
        )


def fit_evidence(problem: Problem, discount: float, answer: Answer, loss: float, noise: float) -> Evidence:
    """An answer's evidence with how well its Q and its ratio fit.

    Args:
        problem: what was answered.
        discount: γ.
        answer: with a ratio.
        loss: the kernel Bellman loss of its Q.
        noise: the loss's standard deviation if the residuals were pure noise.
    """
    assert answer.ratio is not None
    ((flow, flow_noise),) = flow_residuals(problem, discount, [answer.ratio])
    return replace(
        answer.evidence,
        misfit=loss / noise if noise > 0 else 0.0,
        flow=flow / flow_noise if flow_noise > 0 else 0.0,
    )
