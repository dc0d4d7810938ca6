"""One part of a grid from its first step to its last, in portions: after each there is progress and a checkpoint."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import jax
import numpy as np

from gradientdice.base.checkpoint import load_checkpoint, save_checkpoint
from gradientdice.base.provenance import provenance
from gradientdice.dice.stochastic.binding import settings_of
from gradientdice.dice.stochastic.devices import replicate, spread
from gradientdice.dice.stochastic.feed import Feed
from gradientdice.dice.stochastic.function_class import Players
from gradientdice.dice.stochastic.learner import Runs, State
from gradientdice.dice.stochastic.parts import Group, Part
from gradientdice.dice.stochastic.plan import Plan
from gradientdice.dice.stochastic.programs import Compiled, Material
from gradientdice.log.scanning.ahead import read_ahead

PORTIONS = 10

# Called with the number of run-blocks done and the latest figures of their runs.
Watch = Callable[[int, np.ndarray], None]


class Outcome(NamedTuple):
    """What runs came to; the leading axes are (case, seed).

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
    """What all parts of a grid have in common.

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
    """Trains the runs of a part, from its checkpoint if there is one.

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
    """Without what only fills up the part."""
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
        return _digest(value)
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _data_digest(group: Group) -> str:
    if isinstance(group.source, Feed):
        return group.source.identity + _digest(group.recorder)
    return _digest((group.source, group.recorder))


def _digest(tree: Any) -> str:
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        digest.update(np.asarray(leaf).tobytes())
    return digest.hexdigest()
