"""Estimators that answer from the log by themselves, beside those that a solver solves: what they give back.

`evaluate` turns an answer into an `Estimate`: interval, diagnostics and verdict are the same for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from gradientdice.data.transitions import Transitions
from gradientdice.functions.design import Functions
from gradientdice.functions.mlp import MLP
from gradientdice.inference.influence import Influence
from gradientdice.policies import Policy
from gradientdice.solvers.solution import Solution
from gradientdice.solvers.status import Status


@dataclass(frozen=True, eq=False)
class DirectAnswer:
    """What an estimator found.

    Attributes:
        value: ρ_γ: (1−γ)-normalised below discount 1, the average reward at 1.
        ratio: (n,) the weight of each row's reward: where the estimate is linear in the rewards, the weighted mean of
            ratio · reward is the value. None if the estimator has no such thing.
        mean_ratio: the mean of the ratio, the absorbing state's share included: 1 if all is well. None without one.
        shares: each observation's share in the error, for intervals; None if they are not known.
        functions: the function class used, in words; empty if there is none.
        status: how the computation ended.
        solution: the parameters behind it, if it solved a system.
        notes: what the reader should know.
        unlogged: for a large table, the share of the policy's steps that the log cannot show.
        cautions: reasons why the value may not be the policy's, whatever the diagnostics say.
        bellman: whether the shares' residual is r + γV' − Q of a Q that depends on the functions, so that it shows what
            they miss.
        density: (n,) how much denser than the log the target is at each row, where the ratio also counts time.
    """

    value: float
    ratio: Float[np.ndarray, " n"] | None = None
    mean_ratio: float | None = None
    shares: Influence | None = None
    functions: str = ""
    status: Status = Status.OK
    solution: Solution | None = None
    notes: tuple[str, ...] = ()
    unlogged: float | None = None
    cautions: tuple[str, ...] = ()
    bellman: bool = False
    density: Float[np.ndarray, " n"] | None = None


@runtime_checkable
class DirectEstimator(Protocol):
    """A frozen dataclass of hyper-parameters with a discount, which answers by itself."""

    @property
    def discount(self) -> float:
        """γ."""
        ...

    def answer(self, data: Transitions, policy: Policy, functions: Functions | MLP, seed: int) -> DirectAnswer:
        """The value of a policy from a log.

        Args:
            data: the log, checked.
            policy: the policy to evaluate.
            functions: the function class that the user gave, or a table where states and actions are few whole
                numbers, else kernel features. An estimator without functions takes no notice.
            seed: for whatever is random.

        Raises:
            InputError: if the log lacks what the estimator needs; the message names it and what would help.
        """
        ...
