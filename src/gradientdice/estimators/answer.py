"""`Estimator`, `Declared` and `Answer`: what every estimator is, declares, and gives to the front door.

`evaluate` turns an answer into an `Estimate`: interval, diagnostics and verdict are made in the same way for all.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Protocol, runtime_checkable

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
        of_search: whether it is the default's own answer, whose misfit the search for functions has estimated.
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
    of_search: bool = False


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


@dataclass(frozen=True, kw_only=True)
class Declared:
    """Facts about an estimator that refusals, tables and tests read. The defaults are those of a user's own class.

    Attributes:
        family: the kind of method, in words.
        reference: authors, venue and year.
        discounted_only: it has no answer at discount 1.
        average_only: it has an answer at discount 1 alone.
        needs_behavior: it uses the probability with which each logged action was taken.
        whole_trajectories: it uses episodes from their first row to their last.
        uses_functions: it fits functions of states and actions, given or chosen by default.
        takes_networks: these functions may be networks.
        takes_solver: the user may say how its optimum is found.
        from_sums: its closed form needs sums over the rows alone, so that a scanned log will do.
        refusal: the words in which it refuses the discount that it has no answer at; the common ones if empty.
    """

    family: str = ""
    reference: str = ""
    discounted_only: bool = False
    average_only: bool = False
    needs_behavior: bool = False
    whole_trajectories: bool = False
    uses_functions: bool = True
    takes_networks: bool = True
    takes_solver: bool = True
    from_sums: bool = False
    refusal: str = ""


class Declares:
    """Base of the library's estimators: the attributes of `Declared`, with the values that most of them have.

    A class sets those in which it differs. Where one depends on a field, such as the discount, a property takes its
    place.
    """

    family: ClassVar[str] = ""
    reference: ClassVar[str] = ""
    discounted_only: ClassVar[bool] = False
    average_only: ClassVar[bool] = False
    needs_behavior: ClassVar[bool] = False
    whole_trajectories: ClassVar[bool] = False
    uses_functions: ClassVar[bool] = True
    takes_networks: ClassVar[bool] = False
    takes_solver: ClassVar[bool] = False
    from_sums: ClassVar[bool] = False
    refusal: ClassVar[str] = ""


def declared(estimator: object) -> Declared:
    """Read what an estimator declares; a class without declarations is refused nothing.

    Raises:
        InputError: if it declares something of another type.
    """
    said = {}
    for field in fields(Declared):
        value = getattr(estimator, field.name, field.default)
        if not isinstance(value, type(field.default)):
            kind = "a text" if isinstance(field.default, str) else "True or False"
            raise InputError(f"{type(estimator).__name__}.{field.name} must be {kind}, not {value!r:.60}.")
        said[field.name] = value
    return Declared(**said)
