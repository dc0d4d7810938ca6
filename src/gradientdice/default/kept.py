"""What the default learns of a log and keeps for others: the dynamics, and what judges a Q."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from gradientdice.base.accelerator import in_thread
from gradientdice.base.effort import Effort
from gradientdice.problem.folds import Folds
from gradientdice.problem.problem import Problem, num_actions_of
from gradientdice.statistics.bellman import KernelBellmanLoss

if TYPE_CHECKING:
    from gradientdice.default.model.dynamics import Dynamics


@dataclass(eq=False)
class Kept:
    """Dynamics and judges of one log, which do not depend on a policy beyond its number of actions.

    They take much memory: where no other policy needs them, they are made and not kept.

    Attributes:
        always: whether they are kept whoever asks.
    """

    always: bool = False
    _dynamics: dict[tuple[int | None, Effort, int], Callable[[], Dynamics]] = field(default_factory=dict, repr=False)
    _judges: dict[int | None, KernelBellmanLoss] = field(default_factory=dict, repr=False)

    def begin(self, problem: Problem, folds: Folds, effort: Effort) -> None:
        """Learn dynamics in another thread; `dynamics` then waits for them.

        The policy is not asked for them, so that nobody's policy is called from two threads.
        """
        from gradientdice.default.model.values import learned_dynamics

        key = num_actions_of(problem.policy), effort, folds.count
        if key not in self._dynamics:
            self._dynamics[key] = in_thread(lambda: learned_dynamics(problem, folds, effort))

    def dynamics(self, problem: Problem, folds: Folds, effort: Effort) -> Dynamics:
        """The dynamics that were learned without each of these folds.

        Args:
            problem: the log and the policy.
            folds: for which networks that did not see them are needed.
            effort: how large the networks are and how long they are trained.
        """
        from gradientdice.default.model.values import learned_dynamics

        key = num_actions_of(problem.policy), effort, folds.count
        found = self._dynamics.get(key) or cache(lambda: learned_dynamics(problem, folds, effort))
        if self._keeps(problem):
            self._dynamics[key] = found
        else:
            self._dynamics.pop(key, None)
        return found()

    def judge(self, problem: Problem, folds: Folds) -> KernelBellmanLoss:
        """What judges how well a Q fits the rows of these folds."""
        count = num_actions_of(problem.policy)
        found = self._judges.get(count) or KernelBellmanLoss(problem.data, problem.policy, folds)
        if self._keeps(problem):
            self._judges[count] = found
        return found

    def _keeps(self, problem: Problem) -> bool:
        return self.always or problem.sharers > 1
