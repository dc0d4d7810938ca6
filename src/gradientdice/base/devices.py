"""Cores and devices for many training runs: how many runs at a time, on which devices, in how much memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from gradientdice.base.process import usable_cores

CPU_BYTES = 1 << 30
ACCELERATOR_BYTES = 32 << 30
ACCELERATOR_THREADS = 3  # they compile different programs side by side


class Workers(NamedTuple):
    """Threads, memory and devices for the parts of a grid.

    Attributes:
        threads: how many parts are in work at a time.
        splits: into how many parts a group is cut where memory would not cut it.
        max_bytes: the memory that one part may take.
        devices: how many share the runs of a part.
    """

    threads: int
    splits: int
    max_bytes: int
    devices: int


def workers(max_bytes: int | None) -> Workers:
    """On one CPU each core takes a part; accelerators, or several devices, share all runs that fit."""
    devices = len(jax.devices())
    on_cpu = jax.default_backend() == "cpu"
    total = max_bytes or (CPU_BYTES if on_cpu else ACCELERATOR_BYTES)
    if on_cpu and devices == 1:
        cores = usable_cores()
        return Workers(cores, cores, total // cores, 1)
    return Workers(ACCELERATOR_THREADS, 1, total // ACCELERATOR_THREADS, devices)


def advances_together() -> bool:
    """True if runs with draws of their own advance together, as suits an accelerator, not one after the other.

    On a CPU one after the other is faster: its libraries are not made for small products of many networks at a time.
    """
    return jax.default_backend() != "cpu" or len(jax.devices()) > 1


def spread(tree: Any) -> Any:
    """Arrays whose first axis is shared among the devices, if there are several."""
    return _place(tree, PartitionSpec("runs"))


def shared_evenly(tree: Any) -> Any:
    """Arrays whose first axis is shared among the devices if they are several and divide it; else as they are."""
    lengths = {len(leaf) for leaf in jax.tree.leaves(tree)}
    devices = len(jax.devices())
    return spread(tree) if devices > 1 and all(length % devices == 0 for length in lengths) else tree


def replicate(tree: Any) -> Any:
    """Arrays that every device has a copy of, if there are several."""
    return _place(tree, PartitionSpec())


def _place(tree: Any, spec: PartitionSpec) -> Any:
    devices = jax.devices()
    if len(devices) == 1:
        return jax.tree.map(jnp.asarray, tree)
    sharding = NamedSharding(Mesh(np.array(devices), ("runs",)), spec)
    return jax.tree.map(lambda array: jax.device_put(array, sharding), tree)
