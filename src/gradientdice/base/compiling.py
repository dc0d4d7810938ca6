"""Programs that are compiled soon and kept: on a GPU, XLA otherwise times variants of products for very long."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from typing import Any

# No timing of variants, and the library's products in place of generated ones.
GPU_OPTIONS = {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False}
# A processor's program with little optimisation, which halves the time of compiling it.
CPU_OPTIONS = {"xla_backend_optimization_level": 1}
# With so many cores a processor has done small work before a GPU's programs are compiled.
ENOUGH_CORES = 8
# The number of programs that are kept for another call.
MOST_PROGRAMS = 64


class Programs:
    """Compiled programs, each compiled once; threads that want different ones do not wait for each other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[Any, tuple[threading.Lock, list[Any]]] = OrderedDict()

    def get(self, key: Any, arguments: tuple[Any, ...], build: Callable[[], Any]) -> Any:
        """The program of a key for arguments of these shapes, built by `build().lower(*arguments).compile()`."""
        import jax

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


def quickly_compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`jax.jit` with these options and, on a GPU, those that compile quickly."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        import jax

        plain = jax.jit(function, **options)
        quick = jax.jit(function, compiler_options=GPU_OPTIONS, **options)

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            program = quick if quick_options() is GPU_OPTIONS else plain
            return program(*arguments, **named)

        return call

    return decorate


def quick_options() -> dict[str, Any] | None:
    """With these a program for JAX's default device is compiled soon; None where XLA does not know them."""
    import jax

    if jax.default_backend() == "cpu":
        return CPU_OPTIONS
    return GPU_OPTIONS if _known_options() else None


@contextmanager
def on_processor(wanted: bool = True) -> Iterator[None]:
    """JAX computes on the processor inside the `with` if it has another default device and the processor is fast."""
    import jax

    if not wanted or jax.default_backend() == "cpu" or (os.cpu_count() or 1) < ENOUGH_CORES:
        yield
        return
    try:
        place = jax.local_devices(backend="cpu")[0]
    except RuntimeError:  # JAX was told to know none
        yield
        return
    with jax.default_device(place):
        yield


@lru_cache(maxsize=1)
def _known_options() -> bool:
    """True if this version of XLA still knows the options."""
    import jax

    try:
        jax.jit(lambda number: number, compiler_options=GPU_OPTIONS).lower(0.0).compile()
    except Exception:  # whatever is wrong with them, the programs compile without
        return False
    return True
