"""Whole grids of seeds × hyper-parameters, as one compiled program for each structure.

Cases whose programs are the same but for their numbers form a group and run side by side. On CPUs a group's
seeds are cut into a few chunks that run on different cores; on an accelerator one chunk takes them all, unless
memory bounds it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from gradientdice.errors import InputError
from gradientdice.estimators import Estimator
from gradientdice.solvers.recorders import Recorder
from gradientdice.solvers.schedules import Schedule
from gradientdice.solvers.sources import Source
from gradientdice.solvers.training import ESTIMATOR_LEAVES, Outcome, Plan, train_seeds

if TYPE_CHECKING:
    from gradientdice.solvers.neural.training import NeuralPlan

AnyPlan = TypeVar("AnyPlan", Plan, "NeuralPlan")

MAX_BYTES = 1 << 30
# Groups are filled up to a multiple of this many cases: it suits vector units, and groups of like size share a program.
CASE_MULTIPLE = 16
# A run this short takes less time than optimising its program would.
SHORT_STEPS = 5_000


@dataclass(frozen=True, eq=False)
class Group:
    """Cases that one program runs: its static plan, its data, and the numbers of each case."""

    plan: Plan
    source: Source
    recorder: Recorder
    hyper: dict[str, np.ndarray]

    @property
    def size(self) -> int:
        """The number of cases."""
        return len(self.hyper["discount"])


def structure(plan: AnyPlan) -> AnyPlan:
    """The plan with its numbers set to fixed ones, so that equal structures are equal plans."""
    numbers = {name: 0.5 for name in ESTIMATOR_LEAVES if hasattr(plan.estimator, name)}
    schedule = replace(plan.schedule, **{name: 1.0 for name in vars(plan.schedule)})
    return replace(plan, estimator=replace(plan.estimator, **numbers), schedule=schedule)


def hyper_parameters(estimators: Sequence[Estimator], schedules: Sequence[Schedule]) -> dict[str, np.ndarray]:
    """One array for each number of the cases' estimators and schedules."""
    names = [name for name in ESTIMATOR_LEAVES if hasattr(estimators[0], name)]
    hyper = {name: np.array([getattr(e, name) for e in estimators], dtype=np.float32) for name in names}
    for name in vars(schedules[0]):
        hyper[name] = np.array([getattr(s, name) for s in schedules], dtype=np.float32)
    if not all(np.isfinite(array).all() for array in hyper.values()):
        raise InputError("The stochastic solvers need finite hyper-parameters: norm_penalty=inf is for ClosedForm.")
    return hyper


def run_groups(
    groups: Sequence[Group], seeds: Sequence[int], *, max_bytes: int = MAX_BYTES
) -> Iterator[tuple[int, slice, slice, Outcome]]:
    """Runs all seeds of all groups and yields the parts as they are done.

    Yields:
        The number of the group, which of the seeds and which of its cases are done, and their outcome in NumPy
        arrays with axes (seed, …, case).
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    on_cpu = jax.default_backend() == "cpu"
    # An accelerator takes all seeds at once; there the threads are for compiling several programs at a time.
    splits, workers = (cores, cores) if on_cpu else (1, min(cores, 4))
    # The first parts of all groups come first: then the workers compile different programs at the same time.
    parts = [part for wave in _waves(groups, len(seeds), splits, max_bytes // workers) for part in wave]
    programs = _Programs()
    seed_array = np.asarray(seeds, dtype=np.uint32)

    def run(part: _Part) -> tuple[int, slice, slice, Outcome]:
        group = groups[part.group]
        # A short part is filled up with repetitions, so that one program serves all parts.
        rows = np.resize(seed_array[part.seeds], part.num_seeds)
        hyper = {name: jnp.asarray(np.resize(array[part.cases], part.num_cases)) for name, array in group.hyper.items()}
        arguments = (group.source, _select(group.recorder, part), hyper, jnp.asarray(rows))
        program = programs.get(structure(group.plan), arguments)
        outcome = jax.tree.map(np.asarray, program(*arguments))
        num_seeds, num_cases = part.seeds.stop - part.seeds.start, part.cases.stop - part.cases.start
        return part.group, part.seeds, part.cases, jax.tree.map(lambda x: x[:num_seeds, ..., :num_cases], outcome)

    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(run, part) for part in parts]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            for future in futures:
                future.cancel()


def assemble(
    groups: Sequence[Group], seeds: Sequence[int], parts: Iterator[tuple[int, slice, slice, Outcome]]
) -> Iterator[tuple[int, Outcome]]:
    """The whole outcome of each group, as soon as its last part is done."""
    results: dict[int, Outcome] = {}
    missing = {number: len(seeds) * group.size for number, group in enumerate(groups)}
    for number, seed_part, case_part, outcome in parts:
        if number not in results:
            results[number] = jax.tree.map(
                lambda x, size=groups[number].size: np.empty((len(seeds), *x.shape[1:-1], size), x.dtype), outcome
            )
        for whole, part in zip(jax.tree.leaves(results[number]), jax.tree.leaves(outcome), strict=True):
            whole[seed_part, ..., case_part] = part
        missing[number] -= (seed_part.stop - seed_part.start) * (case_part.stop - case_part.start)
        if missing[number] == 0:
            yield number, results.pop(number)


def collect(
    groups: Sequence[Group], seeds: Sequence[int], parts: Iterator[tuple[int, slice, slice, Outcome]]
) -> list[Outcome]:
    """The outcomes of all groups in their order."""
    outcomes = dict(assemble(groups, seeds, parts))
    return [outcomes[number] for number in range(len(groups))]


class _Programs:
    """Compiled programs by structure and shapes, each compiled once; threads with different ones do not wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[Any, tuple[threading.Lock, list[Any]]] = {}

    def get(self, plan: Plan, arguments: tuple[Any, ...]) -> Any:
        leaves, tree = jax.tree.flatten(arguments)
        key = (plan, tree, tuple((leaf.shape, leaf.dtype) for leaf in leaves))
        with self._lock:
            lock, program = self._entries.setdefault(key, (threading.Lock(), []))
        with lock:
            if not program:
                short = plan.steps <= SHORT_STEPS and jax.default_backend() == "cpu"
                options: Any = {"xla_backend_optimization_level": 1} if short else None
                program.append(train_seeds.lower(plan, *arguments).compile(compiler_options=options))
        return program[0]


@dataclass(frozen=True)
class _Part:
    group: int
    seeds: slice
    cases: slice
    num_seeds: int  # as compiled; the slices may be shorter
    num_cases: int


def _waves(groups: Sequence[Group], num_seeds: int, splits: int, max_bytes: int) -> Iterator[list[_Part]]:
    """The parts of all groups, the first of each group first."""
    queues = [list(_parts(number, group, num_seeds, splits, max_bytes)) for number, group in enumerate(groups)]
    while any(queues):
        yield [queue.pop(0) for queue in queues if queue]


def _parts(number: int, group: Group, num_seeds: int, splits: int, max_bytes: int) -> Iterator[_Part]:
    plan = group.plan
    records = -(-plan.steps // plan.record_every)
    # Iterates, their last finite copy, working copies of both, and the curve.
    run_bytes = 4 * (6 * (2 * group.source.num_features + 1) + records + 3 * plan.batch_size)
    runs = max(1, max_bytes // run_bytes)
    filled = -(-group.size // CASE_MULTIPLE) * CASE_MULTIPLE if group.size > 1 else 1
    cases_at_once = min(filled, runs)
    seeds_at_once = min(-(-num_seeds // splits), max(1, runs // cases_at_once))
    for case in range(0, group.size, cases_at_once):
        for seed in range(0, num_seeds, seeds_at_once):
            yield _Part(
                number,
                slice(seed, min(seed + seeds_at_once, num_seeds)),
                slice(case, min(case + cases_at_once, group.size)),
                seeds_at_once,
                cases_at_once,
            )


def _select(recorder: Recorder, part: _Part) -> Recorder:
    """The recorder for some of the cases: true ratios may differ from case to case."""
    truth = getattr(recorder, "truth", None)
    if truth is None or truth.ndim == 1:
        return recorder
    columns = np.resize(np.arange(part.cases.start, part.cases.stop), part.num_cases)
    return recorder._replace(truth=truth[:, columns])
