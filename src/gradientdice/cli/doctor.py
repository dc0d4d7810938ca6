"""`gradientdice doctor`: what a bug report should say about the machine."""

from __future__ import annotations

import importlib.metadata
import json as json_text
import os
import platform
import re
from typing import Any

import typer

from gradientdice.cli.options import Json

NAME = "gradientdice"
BELOW = ("jaxlib",)  # nobody asks for it by name, and its version decides which devices there are
# What JAX and the linear algebra below NumPy read: a strange value explains many a slow or failing run.
VARIABLES = (
    "GRADIENTDICE_CLOSED_FORM",
    "JAX_PLATFORMS",
    "JAX_ENABLE_X64",
    "XLA_FLAGS",
    "CUDA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
)


def doctor(json: Json = False) -> None:
    """Versions, devices and extras, to paste into a bug report."""
    found = examine()
    typer.echo(json_text.dumps(found, indent=2) if json else _as_text(found))


def examine() -> dict[str, Any]:
    """Versions, devices and extras, in plain JSON types; what is missing is None."""
    core, extras = _requirements()
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "packages": {name: _version(name) for name in (NAME, *core, *BELOW)},
        "extras": {extra: {name: _version(name) for name in names} for extra, names in extras.items()},
        "devices": _devices(),
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def _requirements() -> tuple[list[str], dict[str, list[str]]]:
    """The packages that the installed library asks for, and those of each extra: none in a bare source tree."""
    try:
        wanted = importlib.metadata.requires(NAME) or []
    except importlib.metadata.PackageNotFoundError:
        return [], {}
    core: list[str] = []
    extras: dict[str, list[str]] = {}
    for requirement in wanted:
        name = re.match(r"[\w.-]+", requirement)
        extra = re.search(r"""extra\s*==\s*['"]([\w-]+)['"]""", requirement)
        if name is not None:
            (core if extra is None else extras.setdefault(extra[1], [])).append(name[0])
    return core, extras


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _devices() -> list[str]:
    """What JAX computes on, or why that cannot be said: a broken driver is what a bug report is to show."""
    try:
        import jax

        return [f"{device.platform}: {device.device_kind}" for device in jax.devices()]
    except Exception as error:
        return [f"none ({' '.join(f'{type(error).__name__}: {error}'.split())[:200]})"]


def _as_text(found: dict[str, Any]) -> str:
    lines = [("python", found["python"]), ("platform", found["platform"])]
    lines += [("processors", str(found["processors"])), ("devices", "; ".join(found["devices"]))]
    lines += [(name, version or "missing") for name, version in found["packages"].items()]
    for extra, versions in found["extras"].items():
        missing = [name for name, version in versions.items() if version is None]
        lines.append((f"[{extra}]", f"missing: {', '.join(missing)}" if missing else "complete"))
    lines += list(found["variables"].items())
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in lines)
