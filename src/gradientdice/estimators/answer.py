"""`Estimator` and `Answer`: what every estimator is, and the only carrier from an estimator to the front door.

`evaluate` turns an answer into an `Estimate`: interval, diagnostics and verdict are made in the same way for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import InputError
from gradientdice.dice.saddle import Solver
from gradientdice.dice.solution import Solution, Status
from gradientdice.problem.problem import Problem
from gradientdice.statistics.evidence import Evidence
from gradientdice.statistics.influence import Influence


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """What an estimator found.

    Attributes:
        value: ρ_γ: (1−γ)-normalised below discount 1, the average reward at 1.
        influence: each observation's share in the error, for intervals; None if they are not known.
        ratio: (n,) the weight of each row's reward: where the estimate is linear in the rewards, the weighted mean of
            ratio · reward is the value. None if the estimator has no such thing.
        solution: the parameters behind it, if it solved a system.
        evidence: what the verdict reads beside these.
        functions: the function class used, in words; empty if none was used.
        method: how the value was found, in words; empty where the estimator's own name says it.
        status: how the computation ended.
        notes: what the reader should know.
        cautions: reasons why the value may not be the policy's, whatever the diagnostics say.
    """

    value: float
    influence: Influence | None = None
    ratio: Float[np.ndarray, " n"] | None = None
    solution: Solution | None = None
    evidence: Evidence = Evidence()
    functions: str = ""
    method: str = ""
    status: Status = Status.OK
    notes: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()


@runtime_checkable
class Estimator(Protocol):
    """Hyper-parameters with a discount, that answer a problem."""

    @property
    def discount(self) -> float:
        """γ."""
        ...

    def answer(self, problem: Problem, solver: Solver | None = None) -> Answer:
        """The value of a policy from a log.

        Args:
            problem: the log, the policy and the functions, checked.
            solver: how to solve it, if the user gave a solver. An estimator that takes none refuses it by name.

        Raises:
            InputError: if the log lacks what the estimator needs; the message names it and what would help.
        """
        ...


def refuse_solver(estimator: object, solver: Solver | None) -> None:
    """An error if a solver was given to an estimator that takes none."""
    if solver is not None:
        raise InputError(f"{type(estimator).__name__} takes no solver: leave solver= out.")
