"""The door from results to the report room above them, which draws pictures and pages and is imported by name."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

ROOM = "gradientdice.report.views"


def shown(result: object, how: Literal["plot", "report", "cell"], *args: Any, **kwargs: Any) -> Any:
    """Draw a result, write its report, or lay it out as a notebook's cell.

    Args:
        result: of a kind that the report room has views of.
        how: which of these.
        *args: for the view, after the result.
        **kwargs: for the view.
    """
    return getattr(import_module(ROOM).views_of(result), how)(result, *args, **kwargs)
