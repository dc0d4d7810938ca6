"""Maps from the real line to nonnegative numbers, for ratios that must not be negative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Square:
    """u²."""

    def __call__(self, raw: Any) -> Any:
        """u²."""
        return raw * raw


@dataclass(frozen=True)
class Exponential:
    """exp(u)."""

    def __call__(self, raw: Any) -> Any:
        """exp(u)."""
        return raw.__array_namespace__().exp(raw)


@dataclass(frozen=True)
class Softplus:
    """log(1 + exp(u))."""

    def __call__(self, raw: Any) -> Any:
        """log(1 + exp(u)), without overflow."""
        xp = raw.__array_namespace__()
        return xp.logaddexp(raw, xp.zeros_like(raw))


Positivity = Square | Exponential | Softplus
