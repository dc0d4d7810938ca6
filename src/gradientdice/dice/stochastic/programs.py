"""The learner's functions mapped over seeds and compiled.

There is one program for each structure and shape, which is kept for the next call.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gradientdice.base.compiling import CPU_OPTIONS
from gradientdice.dice.stochastic import learner
from gradientdice.dice.stochastic.devices import advances_together
from gradientdice.dice.stochastic.learner import Kept, Runs, State
from gradientdice.dice.stochastic.plan import Plan
from gradientdice.dice.stochastic.recorders import Recorder
from gradientdice.dice.stochastic.sources import Source

MOST_PROGRAMS = 64


class Programs:
    """Compiled programs, each compiled once; threads that want different ones do not wait for each other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[Any, tuple[threading.Lock, list[Any]]] = OrderedDict()

    def get(self, key: Any, arguments: tuple[Any, ...], build: Callable[[], Any]) -> Any:
        """The program of a key for arguments of these shapes, built by `build().lower(*arguments).compile()`."""
        leaves, tree = jax.tree.flatten(arguments)
        shapes = tuple((leaf.shape, leaf.dtype, getattr(leaf, "sharding", None)) for leaf in leaves)
        with self._lock:
            lock, program = self._entries.setdefault((key, tree, shapes), (threading.Lock(), []))
            self._entries.move_to_end((key, tree, shapes))
            while len(self._entries) > MOST_PROGRAMS:
                self._entries.popitem(last=False)
        with lock:
            if not program:
                program.append(build().lower(*arguments).compile())
        return program[0]


PROGRAMS = Programs()


class Material(NamedTuple):
    """What the programs of a part are given at every call.

    Attributes:
        source: where minibatches come from.
        recorder: what the curve shows.
        runs: the numbers and seeds, with a first axis over seeds, or over runs if each has draws of its own. The
            numbers of runs that share a seed's draws have no such axis: they are the same for all seeds.
    """

    source: Source
    recorder: Recorder
    runs: Runs


class Compiled:
    """The programs of a plan on one part's material. States and records have a first axis as the seeds have."""

    def __init__(self, plan: Plan, material: Material, chunk: int) -> None:
        self._plan, self._material, self._chunk = plan, material, chunk
        self._key = plan.key()
        self._ready: dict[Any, Any] = {}

    def given(self, source: Source) -> Compiled:
        """The same with another source, of any shape."""
        return Compiled(self._plan, self._material._replace(source=source), self._chunk)

    def start(self, shape: tuple[int, ...], seeds: np.ndarray) -> State:
        """The first states in NumPy, drawn on a CPU if there is one: the same seed then starts alike everywhere."""
        try:
            place = jax.local_devices(backend="cpu")[0]
        except RuntimeError:
            place = None
        plan = self._plan
        # It runs once, in less time than optimising it would take.
        options: Any = None if place is None else CPU_OPTIONS
        with jax.default_device(place):
            program = PROGRAMS.get(
                ("start", shape, plan.functions, plan.optimizer, plan.averaging, plan.target_rate),
                (seeds,),
                lambda: jax.jit(jax.vmap(partial(learner.start, plan, shape)), compiler_options=options),
            )
            return jax.tree.map(np.asarray, program(seeds))

    def record(self, state: State) -> Any:
        """What the curve shows of the states: (seeds, figures, …)."""
        return self._call(("record", self._chunk), (self._material, state.kept), lambda: jax.jit(self._measure))

    def text(self, state: State) -> str:
        """One update, with every number in it, in words that are the same in another process.

        Functions, such as those of an optimiser, have no words of their own; what they compute has.
        """
        arguments = (self._material, state, np.int32(0))
        first = jax.jit(partial(learner.start, self._plan, ())).lower(np.uint32(0))
        return first.as_text() + jax.jit(partial(self._block, 1)).lower(*arguments).as_text()

    def advance(self, blocks: list[tuple[int, int]], most: int, state: State) -> tuple[State, Any]:
        """Some blocks of updates of the same length, at most `most`. The states given are used up.

        Returns:
            The new states, and what the curve shows after each block: (blocks, seeds, figures, …).
        """
        (first, length), count = blocks[0], len(blocks)
        if jax.default_backend() == "cpu":
            arguments = (self._material, state, np.int32(first), np.int32(count))
            state, records = self._call(
                ("blocks", self._chunk, length, most), arguments, lambda: self._fused(length, most)
            )
            return state, np.asarray(records)[:count]
        # On a GPU, generating and timing matrix products for small batches takes longer than a whole grid, and gains
        # nothing: the library's serve. The records, in which most of the time goes, get generated ones.
        options: Any = {"xla_gpu_enable_triton_gemm": False}
        records = []
        for first, _ in blocks:
            state = self._call(
                ("block", length),
                (self._material, state, np.int32(first)),
                lambda: jax.jit(partial(self._block, length), donate_argnums=1, compiler_options=options),
            )
            records.append(self.record(state))
        return state, records

    def _fused(self, length: int, most: int) -> Any:
        """Several blocks and their records as one program: on a CPU a call takes as long as many small updates."""

        def blocks(material: Material, state: State, first: Any, count: Any) -> tuple[State, Any]:
            def block(number: Any, carry: tuple[State, Any]) -> tuple[State, Any]:
                state, records = carry
                state = self._block(length, material, state, first + number * length)
                return state, records.at[number].set(self._measure(material, state.kept))

            like = jax.eval_shape(self._measure, material, state.kept)
            return lax.fori_loop(0, count, block, (state, jnp.zeros((most, *like.shape), like.dtype)))

        quick = self._plan.steps <= self._plan.functions.quick_steps
        options: Any = CPU_OPTIONS if quick else None
        return jax.jit(blocks, donate_argnums=1, compiler_options=options)

    def _block(self, length: int, material: Material, state: State, first: Any) -> State:
        source, _, runs = material
        return self._map(partial(learner.advance, self._plan, length, source, first), runs, state)

    def _measure(self, material: Material, kept: Kept) -> Any:
        _, recorder, runs = material
        return self._map(partial(learner.record, self._plan, self._chunk, recorder), runs, kept)

    def _map(self, one: Callable[[Runs, Any], Any], runs: Runs, state: Any) -> Any:
        if self._plan.functions.shares_draws:
            return jax.vmap(lambda seed, state: one(Runs(runs.numbers, seed), state))(runs.seed, state)
        return jax.vmap(one)(runs, state) if advances_together() else lax.map(lambda pair: one(*pair), (runs, state))

    def _call(self, what: tuple[Any, ...], arguments: tuple[Any, ...], build: Callable[[], Any]) -> Any:
        # All calls have arguments of the same shapes: a program is looked for once.
        if what not in self._ready:
            self._ready[what] = PROGRAMS.get((what, self._key), arguments, build)
        return self._ready[what](*arguments)
