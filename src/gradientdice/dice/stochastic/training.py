"""Whole grids of seeds × hyper-parameters: cut into parts, trained side by side in portions, put together again.

Cases whose programs are the same but for their numbers form a group. A group is cut into parts that fit into memory and
keep all cores busy. On CPUs the parts of a group run on different cores; on an accelerator one part takes all runs that
fit, and several devices share it. A part goes from its first step to its last in portions: after each there is progress
and a checkpoint.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import jax
import numpy as np

from gradientdice.base.checkpoint import load_checkpoint, save_checkpoint
from gradientdice.base.devices import Workers, advances_together, replicate, spread, workers
from gradientdice.base.errors import InputError, require_count
from gradientdice.base.process import require_own_jax
from gradientdice.base.provenance import provenance
from gradientdice.dice.stochastic.functions import Players
from gradientdice.dice.stochastic.learner import Compiled, Material, Runs, State
from gradientdice.dice.stochastic.plan import Plan, settings_of
from gradientdice.dice.stochastic.setup import Feed, Recorder, leaves_digest
from gradientdice.dice.stochastic.sources import Source, largest_divisor
from gradientdice.log.scanning.ahead import read_ahead

# Cases are filled up to a multiple of this: it suits vector units, and groups of like size share a program.
CASE_MULTIPLE = 16
# Copies of both players' parameters that a run keeps or works on.
COPIES = 16
LARGEST_CHUNK = 8192
# A part's progress is told, and its checkpoint written, about so many times.
PORTIONS = 10

# Called with the number of run-blocks done and the latest figures of their runs.
Watch = Callable[[int, np.ndarray], None]


@dataclass(frozen=True, eq=False)
class Group:
    """Cases that one program runs: their static plan, its data, and the numbers of each case."""

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
    """Numbers of cases and of seeds in a part."""
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
    """The number of rows to measure at a time."""
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


class Outcome(NamedTuple):
    """Results of runs; the leading axes are (case, seed).

    Attributes:
        players: the last finite parameters.
        curve: (…, records, figures), infinite from the record at which a run had diverged.
        diverged_at: the step of divergence, −1 for none.
    """

    players: Players
    curve: np.ndarray
    diverged_at: np.ndarray


@dataclass(frozen=True, eq=False)
class Request:
    """Seeds, checkpoint and progress that all parts of a grid have in common.

    Attributes:
        seeds: all seeds.
        checkpoint: a folder from which the runs go on, and to which they write; None for none.
        watch: told of the progress.
        stopped: set when nobody waits for the runs any more: they end after the portion that they are at.
    """

    seeds: Sequence[int]
    checkpoint: Path | None
    watch: Watch
    stopped: Event = field(default_factory=Event)


def run_part(group: Group, part: Part, request: Request) -> Outcome:
    """Train the runs of a part, from its checkpoint if there is one.

    Returns:
        Arrays with a first axis over seeds and a last one over cases where runs share draws, else with a first axis
        over runs.
    """
    shared = group.plan.functions.shares_draws
    cases = np.resize(part.cases, part.num_cases)
    seeds = np.asarray(request.seeds, dtype=np.uint32)[np.resize(part.seeds, part.num_seeds)]
    numbers = {name: array[cases] for name, array in group.hyper.items()}
    runs = Runs(replicate(numbers) if shared else spread(numbers), spread(seeds))
    feed = group.source if isinstance(group.source, Feed) else None
    source = group.source.template(group.plan) if isinstance(group.source, Feed) else group.source
    material = Material(replicate(source), replicate(group.recorder.select(cases)), runs)
    programs = Compiled(group.plan, material, part.chunk)
    state = spread(programs.start((part.num_cases,) if shared else (), seeds))
    file = None if request.checkpoint is None else _File(group, part, request, programs, state)
    done, curve = 0, [np.asarray(programs.record(state))] if group.plan.functions.records_start else []
    found = None if file is None else file.load()
    if found is not None:
        done, curve, state = found
    # What a feed reads is for one block.
    most = _portion_size(group.plan) if feed is None else 1
    portions = _portions(group.plan, done, most)
    for blocks, fed in _with_programs(portions, programs, group.plan, feed, done):
        state, records = fed.advance(blocks, most, state)
        curve += [np.asarray(record) for record in records]
        done += len(blocks)
        request.watch(_num_runs(part, shared) * len(blocks), _own(curve[-1], part, shared))
        if file is not None:
            file.save(done, curve, state)
        if request.stopped.is_set():
            raise CancelledError
    outcome = Outcome(state.kept.finite, np.stack(curve, axis=1), state.kept.diverged_at)
    return jax.tree.map(lambda leaf: _own(np.asarray(leaf), part, shared), outcome)


def _with_programs(
    portions: Iterator[list[tuple[int, int]]], programs: Compiled, plan: Plan, feed: Feed | None, done: int
) -> Iterator[tuple[list[tuple[int, int]], Compiled]]:
    """Each portion with the programs on its rows; those of the next one are read while it is trained on."""
    if feed is None:
        yield from ((blocks, programs) for blocks in portions)
        return
    sources = read_ahead(feed.sources(plan, done))
    for blocks, source in zip(portions, sources, strict=False):
        yield blocks, programs.given(replicate(source))


def _num_runs(part: Part, shared: bool) -> int:
    return len(part.seeds) * (len(part.cases) if shared else 1)


def _own(array: np.ndarray, part: Part, shared: bool) -> np.ndarray:
    """An array without the repetitions that fill up a short part."""
    own = array[: len(part.seeds)]
    return own[..., : len(part.cases)] if shared else own


def _portion_size(plan: Plan) -> int:
    return -(-len(list(plan.blocks())) // PORTIONS)


def _portions(plan: Plan, done: int, most: int) -> Iterator[list[tuple[int, int]]]:
    """The blocks still to do; a last block that is shorter is a portion of its own."""
    blocks = list(plan.blocks())[done:]
    whole = [block for block in blocks if block[1] == plan.record_every]
    for first in range(0, len(whole), most):
        yield whole[first : first + most]
    if len(whole) < len(blocks):
        yield blocks[-1:]


class _File:
    """A part's checkpoint: its state, its curve, and how many blocks are done."""

    def __init__(self, group: Group, part: Part, request: Request, programs: Compiled, state: State) -> None:
        assert request.checkpoint is not None
        self._path = request.checkpoint / f"group{part.group}-part{part.number}.safetensors"
        self._leaves, self._tree = jax.tree.flatten(state)
        self._types = [leaf.dtype for leaf in self._leaves]
        self._identity = {
            "versions": provenance()["versions"],
            "double precision": bool(jax.config.read("jax_enable_x64")),
            "settings": _settings(group.plan),
            "program": hashlib.sha256(programs.text(state).encode()).hexdigest(),
            "state": [f"{leaf.shape} {leaf.dtype}" for leaf in self._leaves],
            "hyper": {name: array.tolist() for name, array in group.hyper.items()},
            "seeds": [int(seed) for seed in request.seeds],
            "runs": [part.cases.tolist(), part.seeds.tolist(), part.num_cases, part.num_seeds],
            "data": _data_digest(group),
        }

    def load(self) -> tuple[int, list[np.ndarray], State] | None:
        found = load_checkpoint(self._path, self._identity)
        if found is None:
            return None
        leaves = [spread(found[f"leaf{k}"].astype(kind)) for k, kind in enumerate(self._types)]
        return int(found["done"][0]), list(found["curve"].swapaxes(0, 1)), self._tree.unflatten(leaves)

    def save(self, done: int, curve: list[np.ndarray], state: State) -> None:
        arrays = {f"leaf{k}": np.asarray(leaf) for k, leaf in enumerate(jax.tree.leaves(state))}
        save_checkpoint(
            self._path, {**arrays, "curve": np.stack(curve, axis=1), "done": np.array([done])}, self._identity
        )


def _settings(plan: Plan) -> dict[str, str]:
    """The plan in words that are the same in another process; an optimiser has none, but it is part of the program."""
    settings = {name: _lasting(value) for name, value in vars(plan).items() if name not in ("estimator", "optimizer")}
    estimator = {name: _lasting(value) for name, value in settings_of(plan.estimator).items()}
    return {**settings, "estimator": f"{type(plan.estimator).__qualname__} {estimator}"}


def _lasting(value: Any) -> str:
    if isinstance(value, (np.ndarray, jax.Array)):
        return leaves_digest(value)
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _data_digest(group: Group) -> str:
    if isinstance(group.source, Feed):
        return group.source.identity + leaves_digest(group.recorder)
    return leaves_digest((group.source, group.recorder))


def run_groups(
    groups: Sequence[Group],
    seeds: Sequence[int],
    *,
    max_bytes: int | None = None,
    checkpoint: Path | None = None,
    watch: Watch = lambda runs, figures: None,
) -> Iterator[tuple[int, Outcome]]:
    """Train all seeds of all groups.

    Args:
        groups: the groups to train.
        seeds: whole numbers from 0 to 2³² − 1.
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
        """Take in a part; true if it was the last one."""
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
