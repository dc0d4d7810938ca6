"""Draws of PyTorch that follow a NumPy generator, and leave PyTorch's own generator as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def torch_seeded(torch: Any, rng: np.random.Generator | None) -> Iterator[None]:
    """In this block PyTorch draws from a seed of `rng`; nothing is seeded without one."""
    if rng is None:
        yield
        return
    with torch.random.fork_rng():
        torch.manual_seed(int(rng.integers(2**63 - 1)))
        yield
