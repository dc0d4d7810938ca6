"""What is asked of a scanned log, and how passes over it are run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from gradientdice.base.atomic import temporary_folder
from gradientdice.base.effort import Effort
from gradientdice.base.errors import InputError, require_count, require_flag
from gradientdice.base.process import usable_cores
from gradientdice.functions import MLP, LinearFunctions
from gradientdice.log.scanning.episodes import EpisodePass, OutOfOrder
from gradientdice.log.scanning.log import ScannedLog, require_unchanged
from gradientdice.log.scanning.passes import Run, Sums
from gradientdice.log.scanning.spill import Spill
from gradientdice.policies import DiscretePolicy, LoggedPolicy, Policy, StatePolicy
from gradientdice.problem.entrance import (
    require_functions,
    require_numbered_states,
    require_policy,
    require_same_width,
)
from gradientdice.problem.meeting import over_logged_actions, require_function
from gradientdice.problem.problem import LARGEST_REWARD

# What one thread makes keeps no more than so many busy: products of tens of features take some times as long as these.
MOST_THREADS = 4

SumsPass = TypeVar("SumsPass", bound=EpisodePass)


@dataclass(frozen=True, eq=False)
class Asked:
    """A question to a scanned log.

    Attributes:
        log: the log.
        policy: the policy to evaluate.
        functions: the function class; None is a table where states and actions are few whole numbers. Networks are
            for solvers that read minibatches.
        seed: for whatever is random.
        run: how passes are run.
        effort: how much work the search for functions may take.
    """

    log: ScannedLog
    policy: StatePolicy
    functions: LinearFunctions | MLP | None
    seed: int
    run: Run
    effort: Effort = Effort.NORMAL

    @cached_property
    def has_first_states(self) -> bool:
        """Whether the first state of each episode is an initial state: none are given, and rows are in time order."""
        columns = self.log.columns
        return "initial_states" not in columns and "episodes" in columns and self.log.sample.time_order is not None

    @property
    def threads(self) -> int:
        """How many threads a pass may use beside its own: a worker of a cluster has one core, and others beside it."""
        cores = usable_cores() if self.log.client is None else 1
        return 0 if cores == 1 else min(cores, MOST_THREADS)

    def summed(self, make: Callable[[Spill | None], SumsPass]) -> Sums:
        """The sums of a pass over the whole log; where its episodes come in no order, by way of the disk."""
        work = make(None)
        try:
            return work.finished(self.run.sums(self.log, work))
        except OutOfOrder:
            if self.log.client is not None:
                raise InputError(
                    "On a cluster the numbers of the episodes must not decrease from row to row: sort the log by "
                    "episode, or read it on one machine (scan without client=)."
                ) from None
        if self.run.checkpoint is not None:
            return self._by_disk(make, self.run.checkpoint / f"{work.name}-episodes")
        with temporary_folder() as folder:
            return self._by_disk(make, folder)

    def _by_disk(self, make: Callable[[Spill | None], SumsPass], folder: Path) -> Sums:
        work = make(Spill(folder, len(self.log.parts)))
        return work.finished(self.run.sums(self.log, work))


def as_asked(
    log: ScannedLog, policy: Policy, functions: Any, seed: int, run: Run, effort: Effort = Effort.NORMAL
) -> Asked:
    """The question, or an error that says what a scanned log cannot answer."""
    require_policy(policy)
    require_functions(functions)
    require_count("seed", seed, low=0)
    if run.progress is not None:
        require_flag("progress", run.progress)
    if isinstance(policy, LoggedPolicy):
        raise InputError(
            "A LoggedPolicy has one row per transition in memory, which a scanned log has not: give the policy as a "
            "function, by DiscretePolicy or SamplingPolicy."
        )
    words = policy.action_names if isinstance(policy, DiscretePolicy) else None
    if words is not None and log.action_names is not None and words != log.action_names:
        raise InputError(
            f"The log numbers its actions as {list(log.action_names)[:10]} and the policy as {list(words)[:10]}. Give "
            "the policy's probabilities in the log's order, or load the log, which numbers it anew."
        )
    require_unchanged(log)
    policy = over_logged_actions(log.sample, policy, functions, whole_log=not log.is_sampled)
    assert not isinstance(policy, LoggedPolicy)
    require_numbered_states(log.sample, policy)
    require_function(log.sample, policy, functions)
    require_same_width(log.sample, policy)
    return Asked(log, policy, functions, seed, run, effort)


def share_unit(sums: Sums) -> float:
    """A power of two near the size of one row's share: powers of the shares then neither vanish nor overflow."""
    return math.ldexp(1.0, math.frexp((largest_reward(sums) or 1.0) / float(sums["totals"][0]))[1])


def largest_reward(sums: Sums) -> float:
    """The largest |r| of the rows that count; an error if it is too large, or if none counts."""
    if "reward_low" not in sums or sums["totals"][0] <= 0:
        raise InputError("weights are all zero: at least one row must count.")
    largest = max(abs(float(sums["reward_low"][0])), abs(float(sums["reward_high"][0])))
    if largest > LARGEST_REWARD:
        raise InputError(
            f"rewards as large as {largest:.1e} overflow when they are squared: divide them by a constant, and "
            "multiply the value by it."
        )
    return largest
