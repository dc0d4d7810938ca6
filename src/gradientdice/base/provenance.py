"""Origin of a result: versions, machine and settings, to stand beside every table and figure."""

from __future__ import annotations

import importlib.metadata
import platform
from functools import cache
from typing import Any

PACKAGES = ("gradientdice", "numpy", "scipy", "jax", "jaxlib", "optax", "pandas")


def provenance(**settings: Any) -> dict[str, Any]:
    """Versions of the software behind a result, and the settings given; plain JSON types."""
    versions = {name: _version(name) for name in PACKAGES}
    return {"python": platform.python_version(), "platform": platform.platform(), "versions": versions, **settings}


@cache
def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"  # run from a source tree that is not installed
