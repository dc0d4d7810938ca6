"""What learns further Qs for a search, by networks, and what to say where nothing does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from gradientdice.base.effort import Effort
from gradientdice.default.kept import Kept
from gradientdice.default.model.needs import can_simulate
from gradientdice.default.value_candidates import SimulatedValues
from gradientdice.problem.folds import Folds
from gradientdice.problem.problem import Problem
from gradientdice.statistics.influence import HeldOutQ


class Simulation(Protocol):
    """Learns a model without each fold and scores the fold's rows with it."""

    def __call__(
        self, problem: Problem, discounts: Sequence[float], folds: Folds, effort: Effort
    ) -> SimulatedValues | None:
        """Q and V of each discount; None where a model does not apply."""
        ...


class Fitting(Protocol):
    """Fits a Q to the log without each fold and scores the fold's rows with it."""

    def __call__(
        self, problem: Problem, discounts: Sequence[float], folds: Folds
    ) -> Callable[[], Sequence[HeldOutQ | None]]:
        """Asks the policy; the result then gives Q and V of each discount, None where the fit diverged."""
        ...


@dataclass(frozen=True)
class Learners:
    """What a search learns beside the kernel's Q.

    Attributes:
        simulate: learns a model of the dynamics; None for none.
        fit: fits a Q to the log; None for none.
    """

    simulate: Simulation | None = None
    fit: Fitting | None = None


def learners_for(problem: Problem, kept: Kept) -> Learners:
    """Networks, where the policy can be asked anywhere and there is time for them; `kept` has what others learned."""
    if without_networks(problem):
        return Learners()
    # Networks need JAX, which a quick answer does not import.
    from gradientdice.default.fitted_values import fitted_q_values
    from gradientdice.default.model.values import simulated_values

    return Learners(partial(simulated_values, kept=kept), fitted_q_values)


def without_networks(problem: Problem) -> str:
    """Why no network is trained, in words; empty if some are."""
    if not can_simulate(problem.policy):
        return "the policy is known at the log's states only, so that it was not simulated: Q is the kernel's alone"
    if problem.effort is Effort.QUICK:
        return "quick: the policy was not simulated in a learned model, nor a Q fitted; normal effort does both"
    return ""
