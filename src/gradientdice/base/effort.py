"""The work that an answer may take, in one word."""

from __future__ import annotations

from enum import StrEnum

from gradientdice.base.errors import InputError


class Effort(StrEnum):
    """Work that an answer may take: a word in place of many settings. Each estimator has its own table of them.

    Example:
        >>> from gradientdice.base.effort import Effort
        >>> Effort("quick") is Effort.QUICK
        True
    """

    QUICK = "quick"
    NORMAL = "normal"
    THOROUGH = "thorough"


def require_effort(effort: str) -> Effort:
    """The effort of this name, or an error that says which there are."""
    try:
        return Effort(effort)
    except ValueError:
        raise InputError(f"effort must be one of {', '.join(Effort)}, not {effort!r:.60}.") from None
