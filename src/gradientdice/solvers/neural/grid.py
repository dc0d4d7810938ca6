"""Grids of neural runs: split to fit into memory, spread over devices, checkpointed.

On CPUs the parts of a grid run on different cores; on an accelerator one part takes all runs that fit. Where there are
several devices, the runs of a part are shared among them by JAX's own sharding.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from gradientdice.solvers.checkpoint import load_checkpoint, save_checkpoint
from gradientdice.solvers.grid import MAX_BYTES, structure
from gradientdice.solvers.neural.training import (
    NeuralData,
    NeuralPlan,
    Players,
    RunState,
    advance_runs,
    record_runs,
    start_runs,
)

# Of a whole run: after each there is progress and a checkpoint.
PORTIONS = 10
ACCELERATOR_BYTES = 32 << 30
ACCELERATOR_THREADS = 3  # they compile different programs side by side


@dataclass(frozen=True, eq=False)
class NeuralGroup:
    """Cases that one program runs: its static plan, its data, and the numbers of each case."""

    plan: NeuralPlan
    data: NeuralData
    hyper: dict[str, np.ndarray]

    @property
    def size(self) -> int:
        """The number of cases."""
        return len(self.hyper["discount"])


class NeuralOutcome(NamedTuple):
    """What a group's runs came to; the leading axes are (case, seed).

    Attributes:
        players: the last finite parameters.
        curve: (…, records + 1, 2): ρ̂ and E[τ], the first before any update.
        diverged_at: the step of divergence, −1 for none.
    """

    players: Players
    curve: np.ndarray
    diverged_at: np.ndarray


def record_steps(plan: NeuralPlan) -> np.ndarray:
    """The steps of the curve's points, 0 among them."""
    return np.minimum(np.arange(_num_blocks(plan) + 1) * plan.record_every, plan.steps)


def run_neural(
    groups: Sequence[NeuralGroup],
    seeds: Sequence[int],
    *,
    max_bytes: int | None = None,
    checkpoint: Path | None = None,
    watch: Callable[[int, np.ndarray], None] = lambda runs, values: None,
) -> list[NeuralOutcome]:
    """Runs all seeds of all groups.

    Args:
        groups: what to run.
        seeds: which seeds.
        max_bytes: the memory that all parts in work together may take.
        checkpoint: a folder from which the run goes on, and to which it writes.
        watch: called with the number of run-blocks done and their latest ρ̂.
    """
    on_cpu = jax.default_backend() == "cpu"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    several = len(jax.devices()) > 1
    # On one CPU each core takes a part.
    workers = cores if on_cpu and not several else ACCELERATOR_THREADS
    limit = (max_bytes or (MAX_BYTES if on_cpu else ACCELERATOR_BYTES)) // workers
    splits = workers if on_cpu and not several else 1
    parts = [part for number, group in enumerate(groups) for part in _parts(number, group, len(seeds), splits, limit)]
    with ThreadPoolExecutor(workers) as pool:
        jobs = [pool.submit(_run_part, groups[part.group], part, seeds, checkpoint, watch) for part in parts]
        try:
            results = [job.result() for job in jobs]
        finally:
            for job in jobs:
                job.cancel()
    outcomes = []
    for number, group in enumerate(groups):
        own = [result for part, result in zip(parts, results, strict=True) if part.group == number]
        whole = jax.tree.map(lambda *arrays: np.concatenate(arrays), *own)
        outcomes.append(jax.tree.map(lambda a, g=group: a.reshape(g.size, len(seeds), *a.shape[1:]), whole))
    return outcomes


class _Part(NamedTuple):
    group: int
    runs: slice
    num_runs: int  # as compiled; the slice may be shorter
    chunk: int


def _parts(number: int, group: NeuralGroup, num_seeds: int, splits: int, max_bytes: int) -> Iterator[_Part]:
    total = group.size * num_seeds
    width = max(group.plan.functions.hidden)
    sizes = (group.data.current.shape[1], *group.plan.functions.hidden, 1)
    weights = sum(a * b + b for a, b in zip(sizes[:-1], sizes[1:], strict=True))
    # Parameters in their several copies, and the activations of a minibatch with their gradients.
    per_run = 4 * (2 * weights * 8 + group.plan.batch_size * 3 * width * 6)
    at_once = min(-(-total // splits), max(1, max_bytes // (2 * per_run)))
    devices = len(jax.devices())
    at_once = -(-at_once // devices) * devices
    # Where runs go one after the other their number must not matter, not even to the order in which ρ̂ is summed.
    most = max_bytes // 4 // (at_once * width * 8) if _together() else 8192
    chunk = _divisor(len(group.data.rewards), int(np.clip(most, 64, 8192)))
    for first in range(0, total, at_once):
        yield _Part(number, slice(first, min(first + at_once, total)), at_once, chunk)


def _divisor(rows: int, most: int) -> int:
    """A chunk that divides the rows, if there is one of about the wanted size: a remainder is one more program part."""
    most = min(rows, most)
    return next((size for size in range(most, most // 2, -1) if rows % size == 0), most)


def _run_part(
    group: NeuralGroup,
    part: _Part,
    seeds: Sequence[int],
    checkpoint: Path | None,
    watch: Callable[[int, np.ndarray], None],
) -> NeuralOutcome:
    plan = group.plan
    template = structure(plan)
    case, seed = np.divmod(np.resize(np.arange(part.runs.start, part.runs.stop), part.num_runs), len(seeds))
    hyper = {name: _spread(array[case]) for name, array in group.hyper.items()}
    seed_array = _spread(np.asarray(seeds, dtype=np.uint32)[seed])
    blocks = _num_blocks(plan)
    state = jax.tree.map(_spread, _start(plan, group.data.current.shape[1], np.asarray(seeds, dtype=np.uint32)[seed]))
    leaves, tree = jax.tree.flatten(state)
    path = identity = None

    def measured(state: RunState) -> Any:
        return record_runs(template.estimator, group.data, state, part.chunk, _together())

    done, curve = 0, [np.asarray(measured(state))]
    if checkpoint is not None:
        path = checkpoint / f"group{part.group}-runs{part.runs.start}-{part.runs.stop}.safetensors"
        identity = _identity(plan, group, part, seeds)
        found = load_checkpoint(path, identity)
        if found is not None:
            done, curve = int(found["done"][0]), list(found["curve"].swapaxes(0, 1))
            state = tree.unflatten([_spread(found[f"leaf{k}"].astype(leaf.dtype)) for k, leaf in enumerate(leaves)])
    count = part.runs.stop - part.runs.start
    for numbers in _portions(done, blocks):
        records = []
        for number in numbers:
            state = advance_runs(template, group.data, hyper, seed_array, state, jnp.asarray(number), _together())
            records.append(measured(state))
        curve += [np.asarray(record) for record in records]
        watch(count * len(records), curve[-1][:count, 0])
        if path is not None and identity is not None:
            arrays = {f"leaf{k}": np.asarray(leaf) for k, leaf in enumerate(jax.tree.leaves(state))}
            whole = np.stack(curve, axis=1)
            save_checkpoint(path, {**arrays, "curve": whole, "done": np.array([numbers[-1] + 1])}, identity)
    final = jax.tree.map(lambda leaf: np.asarray(leaf)[:count], (state.finite, state.diverged_at))
    return NeuralOutcome(final[0], np.stack(curve, axis=1)[:count], final[1])


def _portions(done: int, blocks: int) -> Iterator[range]:
    """The blocks still to do, in portions: after each of them there is progress and a checkpoint."""
    size = max(1, -(-blocks // PORTIONS))
    for first in range(done, blocks, size):
        yield range(first, min(first + size, blocks))


def _num_blocks(plan: NeuralPlan) -> int:
    return -(-plan.steps // plan.record_every)


def _spread(array: Any) -> Any:
    """An array over runs, shared among the devices if there are several."""
    devices = jax.devices()
    if len(devices) == 1:
        return jnp.asarray(array)
    return jax.device_put(array, NamedSharding(Mesh(np.array(devices), ("runs",)), PartitionSpec("runs")))


def _together() -> bool:
    """Whether runs advance together, as suits an accelerator, or one after the other."""
    return jax.default_backend() != "cpu" or len(jax.devices()) > 1


def _start(plan: NeuralPlan, width: int, seeds: np.ndarray) -> Any:
    """The first states, drawn on a CPU if there is one: it compiles that sooner, and the same seed starts alike."""
    try:
        place = jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        place = None
    with jax.default_device(place):
        return jax.tree.map(np.asarray, start_runs(plan.functions, plan.optimizer, width, jnp.asarray(seeds)))


def _identity(plan: NeuralPlan, group: NeuralGroup, part: _Part, seeds: Sequence[int]) -> dict[str, Any]:
    """What a checkpoint belongs to: the settings, the numbers, the seeds and the data."""
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(group.data):
        digest.update(np.asarray(leaf).tobytes())
    settings = replace(plan, optimizer=None)  # type: ignore[arg-type] - functions have no name that lasts
    return {
        "settings": repr(settings),
        "hyper": {name: array.tolist() for name, array in group.hyper.items()},
        "seeds": [int(seed) for seed in seeds],
        "runs": [part.runs.start, part.runs.stop, part.num_runs],
        "data": digest.hexdigest(),
    }
