"""The learner's functions mapped over seeds and compiled.

There is one program for each structure and shape, which is kept for the next call.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import lax

from gradientdice.solvers.stochastic import learner
from gradientdice.solvers.stochastic.devices import advances_together
from gradientdice.solvers.stochastic.learner import Kept, Runs, State
from gradientdice.solvers.stochastic.plan import Plan
from gradientdice.solvers.stochastic.recorders import Recorder
from gradientdice.solvers.stochastic.sources import Source

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


class Compiled:
    """The programs of a plan for runs of certain shapes: all calls of one object have arguments of the same shapes.

    Arguments and results have a first axis over seeds, or over runs if each has draws of its own. Numbers have the same
    first axis, unless the runs of a seed share its draws: then they are the same for all seeds.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._key = plan.key()
        self._ready: dict[Any, Any] = {}

    def start(self, shape: tuple[int, ...], seeds: np.ndarray) -> State:
        """The first states in NumPy, drawn on a CPU if there is one: the same seed then starts alike everywhere."""
        try:
            place = jax.local_devices(backend="cpu")[0]
        except RuntimeError:
            place = None
        plan = self._plan
        # It runs once, in less time than optimising it would take.
        options = None if place is None else {"xla_backend_optimization_level": 1}
        with jax.default_device(place):
            program = PROGRAMS.get(
                ("start", shape, plan.functions, plan.optimizer, plan.averaging, plan.target_rate),
                (seeds,),
                lambda: jax.jit(jax.vmap(partial(learner.start, plan, shape)), compiler_options=options),
            )
            return jax.tree.map(np.asarray, program(seeds))

    def advance(self, length: int, source: Source, runs: Runs, state: State, first: int) -> State:
        """A block of updates. The state given is used up."""

        def block(source: Source, runs: Runs, state: State, first: Any) -> State:
            return self._map(partial(learner.advance, self._plan, length, source, first), runs, state)

        def build() -> Any:
            # On a GPU, generating and timing matrix products for small batches takes longer than a whole grid, and
            # gains nothing: the library's serve. The records, in which most of the time goes, get generated ones.
            options: dict[str, Any] = {"xla_gpu_enable_triton_gemm": False}
            if quick and jax.default_backend() == "cpu":
                options["xla_backend_optimization_level"] = 1
            return jax.jit(block, donate_argnums=2, compiler_options=options)

        quick = self._plan.steps <= self._plan.functions.quick_steps
        return self._call(("advance", length, quick), (source, runs, state, np.int32(first)), build)

    def record(self, chunk: int, recorder: Recorder, runs: Runs, state: State) -> Any:
        """What the curve shows of the states."""

        def measure(recorder: Recorder, runs: Runs, kept: Kept) -> Any:
            return self._map(partial(learner.record, self._plan, chunk, recorder), runs, kept)

        return self._call(("record", chunk), (recorder, runs, state.kept), lambda: jax.jit(measure))

    def _call(self, what: Any, arguments: tuple[Any, ...], build: Callable[[], Any]) -> Any:
        # Finding a program among all others takes as long as a short block of updates: it is done once.
        if what not in self._ready:
            self._ready[what] = PROGRAMS.get((what, self._key), arguments, build)
        return self._ready[what](*arguments)

    def _map(self, one: Callable[[Runs, Any], Any], runs: Runs, state: Any) -> Any:
        if self._plan.functions.shares_draws:
            return jax.vmap(lambda seed, state: one(Runs(runs.numbers, seed), state))(runs.seed, state)
        return jax.vmap(one)(runs, state) if advances_together() else lax.map(lambda pair: one(*pair), (runs, state))
