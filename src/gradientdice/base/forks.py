"""Was this process forked from one in which JAX had run? Its threads are then gone, and JAX waits for them for ever."""

from __future__ import annotations

import os
import sys

from gradientdice.base.errors import InputError

_forked_after_jax = False


def require_own_jax() -> None:
    """An error in a process that was forked after JAX had run: it would hang."""
    if _forked_after_jax:
        raise InputError(
            "This process was forked from one in which JAX had run, where JAX hangs. Start it by "
            'multiprocessing.get_context("spawn"), or run networks and stochastic solvers in one of the two alone.'
        )


def has_own_jax() -> bool:
    """Whether JAX can be used in this process."""
    return not _forked_after_jax


def _after_fork() -> None:
    global _forked_after_jax
    bridge = sys.modules.get("jax._src.xla_bridge")
    # Where this JAX does not say whether it has run, having been imported counts.
    has_run = getattr(bridge, "backends_are_initialized", lambda: True) if bridge else (lambda: False)
    _forked_after_jax = _forked_after_jax or bool(has_run())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
