"""Whole grids of seeds × hyper-parameters: cut into parts, run side by side, put together again.

Cases whose programs are the same but for their numbers form a group. On CPUs the parts of a group run on different
cores; on an accelerator one part takes all runs that fit, and several devices share it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import jax
import numpy as np

from gradientdice.base.errors import InputError, require_count
from gradientdice.base.forks import require_own_jax
from gradientdice.dice.stochastic.devices import workers
from gradientdice.dice.stochastic.parts import Group, Part, cut
from gradientdice.dice.stochastic.training import Outcome, Request, Watch, run_part


def run_groups(
    groups: Sequence[Group],
    seeds: Sequence[int],
    *,
    max_bytes: int | None = None,
    checkpoint: Path | None = None,
    watch: Watch = lambda runs, figures: None,
) -> Iterator[tuple[int, Outcome]]:
    """Runs all seeds of all groups.

    Args:
        groups: what to run.
        seeds: which seeds.
        max_bytes: the memory that all parts in work together may take; None leaves it to the device.
        checkpoint: a folder from which the runs go on, and to which they write.
        watch: called with the number of run-blocks done and the latest figures of their runs.

    Yields:
        The number of each group and its outcome, as soon as its last part is done.
    """
    require_own_jax()
    if any(require_count("seeds", seed, low=0) >= 2**32 for seed in seeds):
        raise InputError("Seeds must be whole numbers below 2**32.")
    available = workers(max_bytes)
    parts = cut(groups, len(seeds), available)
    request = Request([int(seed) for seed in seeds], checkpoint, watch)
    wholes = [_Whole(group, len(seeds)) for group in groups]
    with ThreadPoolExecutor(available.threads) as pool:
        jobs: dict[Future[Outcome], Part] = {
            pool.submit(run_part, groups[part.group], part, request): part for part in parts
        }
        try:
            for job in as_completed(jobs):
                part = jobs[job]
                if wholes[part.group].put(part, job.result()):
                    yield part.group, wholes[part.group].outcome
        finally:
            # On an interrupt those at work end at their next checkpoint, and the others do not begin.
            request.stopped.set()
            for job in jobs:
                job.cancel()


def collect(results: Iterator[tuple[int, Outcome]]) -> list[Outcome]:
    """The outcomes of all groups in their order."""
    outcomes = dict(results)
    return [outcomes[number] for number in range(len(outcomes))]


class _Whole:
    """A group's outcome, filled part by part."""

    def __init__(self, group: Group, num_seeds: int) -> None:
        self._group, self._num_seeds = group, num_seeds
        self._missing = group.size * num_seeds
        self.outcome: Any = None

    def put(self, part: Part, found: Outcome) -> bool:
        """Takes in a part; returns whether it was the last one."""
        if self._group.plan.functions.shares_draws:
            place: Any = np.ix_(part.cases, part.seeds)
            found = jax.tree.map(lambda leaf: np.moveaxis(leaf, -1, 0), found)
            self._missing -= len(part.cases) * len(part.seeds)
            axes = 2
        else:
            place, axes = (part.cases, part.seeds), 1
            self._missing -= len(part.seeds)
        if self.outcome is None:
            shape = self._group.size, self._num_seeds
            self.outcome = jax.tree.map(lambda leaf: np.empty((*shape, *leaf.shape[axes:]), leaf.dtype), found)
        for whole, own in zip(jax.tree.leaves(self.outcome), jax.tree.leaves(found), strict=True):
            whole[place] = own
        return self._missing == 0
