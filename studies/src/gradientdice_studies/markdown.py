"""Small helpers for the result pages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def number(value: float, digits: int = 2) -> str:
    """A number with this many significant digits; ∞ and very small ones as such, a dash for what is not known."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        text = f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.0f}"
        return text
    return f"{value:.{digits - 1}e}"


def with_error(value: float, error: float, digits: int = 2) -> str:
    """Value ± standard error."""
    return f"{number(value, digits)} ± {number(error, 1)}"
