"""How a group of runs is cut into parts that fit into memory and keep all cores busy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gradientdice.dice.stochastic.devices import Workers, advances_together
from gradientdice.dice.stochastic.feed import Feed
from gradientdice.dice.stochastic.pieces import largest_divisor
from gradientdice.dice.stochastic.plan import Plan
from gradientdice.dice.stochastic.recorders import Recorder
from gradientdice.dice.stochastic.sources import Source

# Cases are filled up to a multiple of this: it suits vector units, and groups of like size share a program.
CASE_MULTIPLE = 16
# Copies of both players' parameters that a run keeps or works on.
COPIES = 16
LARGEST_CHUNK = 8192


@dataclass(frozen=True, eq=False)
class Group:
    """Cases that one program runs: its static plan, its data, and the numbers of each case."""

    plan: Plan
    source: Source | Feed
    recorder: Recorder
    hyper: dict[str, np.ndarray]

    @property
    def size(self) -> int:
        """The number of cases."""
        return len(self.hyper["discount"])


class Part(NamedTuple):
    """Runs that one call of a program advances.

    Attributes:
        group: the number of the group.
        number: of the part within its group.
        cases: which cases. Where runs share draws, every case runs with every seed; else the first case with the
            first seed, and so on.
        seeds: which seeds, by their place in the list of seeds.
        num_cases: as compiled; a short part is filled up with repetitions, so that one program serves all parts.
        num_seeds: likewise.
        chunk: how many rows of the log are measured at a time.
    """

    group: int
    number: int
    cases: np.ndarray
    seeds: np.ndarray
    num_cases: int
    num_seeds: int
    chunk: int


def cut(groups: Sequence[Group], num_seeds: int, available: Workers) -> list[Part]:
    """All parts, the first of each group first: then the workers compile different programs at the same time."""
    queues = [list(_parts(number, group, num_seeds, available)) for number, group in enumerate(groups)]
    parts = []
    while any(queues):
        parts += [queue.pop(0) for queue in queues if queue]
    return parts


def _parts(number: int, group: Group, num_seeds: int, available: Workers) -> Iterator[Part]:
    if group.plan.functions.shares_draws:
        cases, seeds = _shared_sizes(group, num_seeds, available)
        slices = [
            (np.arange(case, min(case + cases, group.size)), np.arange(seed, min(seed + seeds, num_seeds)))
            for case in range(0, group.size, cases)
            for seed in range(0, num_seeds, seeds)
        ]
        at_once = cases * seeds
    else:
        total = group.size * num_seeds
        most = min(-(-total // available.splits), max(1, available.max_bytes // _run_bytes(group)))
        # Runs that go one after the other would only wait for those that fill up a short part.
        cases = seeds = _multiple(most, available.devices) if advances_together() else largest_divisor(total, most)
        runs = [np.arange(first, min(first + seeds, total)) for first in range(0, total, seeds)]
        slices = [(own // num_seeds, own % num_seeds) for own in runs]
        at_once = seeds
    chunk = _chunk(group, at_once, available.max_bytes)
    for place, (own_cases, own_seeds) in enumerate(slices):
        yield Part(number, place, own_cases, own_seeds, cases, seeds, chunk)


def _shared_sizes(group: Group, num_seeds: int, available: Workers) -> tuple[int, int]:
    """How many cases and how many seeds a part takes."""
    run_bytes = _run_bytes(group)
    filled = _multiple(group.size, CASE_MULTIPLE) if group.size > 1 else 1
    cases = min(filled, max(1, available.max_bytes // run_bytes))
    draws = group.source.bytes_per_draw * group.plan.record_every * group.plan.batch_size
    seeds = min(-(-num_seeds // available.splits), max(1, available.max_bytes // (cases * run_bytes + draws)))
    return cases, _multiple(seeds, available.devices)


def _run_bytes(group: Group) -> int:
    plan, functions = group.plan, group.plan.functions
    # Parameters, the intermediate results of a minibatch with their gradients, and the curve.
    working = 2 * (COPIES * functions.num_weights + 18 * plan.batch_size * functions.width)
    return 4 * (working + len(group.recorder.names) * len(plan.record_steps()))


def _chunk(group: Group, at_once: int, max_bytes: int) -> int:
    """How many rows to measure at a time."""
    rows, functions = group.recorder.num_rows, group.plan.functions
    most = max_bytes // 4 // (8 * at_once * functions.width)
    if functions.shares_draws:
        return rows if rows <= most else _divisor(rows, max(64, most))
    # Where runs go one after the other their number must not matter, not even to the order in which ρ̂ is summed.
    return _divisor(rows, int(np.clip(most, 64, LARGEST_CHUNK)) if advances_together() else LARGEST_CHUNK)


def _divisor(rows: int, most: int) -> int:
    """A chunk that divides the rows, if there is one of about the wanted size: a remainder is one more program part."""
    most = min(rows, most)
    return next((size for size in range(most, most // 2, -1) if rows % size == 0), most)


def _multiple(count: int, unit: int) -> int:
    return -(-count // unit) * unit
