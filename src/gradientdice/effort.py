"""How much work an answer may take."""

from __future__ import annotations

from enum import StrEnum


class Effort(StrEnum):
    """How much work an answer may take: a word in place of many settings. Each estimator has its own table of them.

    Example:
        >>> from gradientdice.effort import Effort
        >>> Effort("quick") is Effort.QUICK
        True
    """

    QUICK = "quick"
    NORMAL = "normal"
    THOROUGH = "thorough"
