"""A check: one figure against two thresholds, with what it means and what would help."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any


class Verdict(Enum):
    """Whether to believe an estimate."""

    TRUST = "trust"
    CAUTION = "caution"
    DO_NOT_TRUST = "do not trust"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Check:
    """One figure against its two thresholds.

    Attributes:
        name: the diagnostic.
        value: what was measured.
        caution: the threshold beyond which it calls for caution.
        alarm: the threshold beyond which the estimate is not to be trusted.
        verdict: which side it fell on.
        meaning: what the figure says, in words.
        remedy: what would help.
        noise: the standard deviation that the figure would have if all were well, where that is known.
    """

    name: str
    value: float
    caution: float
    alarm: float
    verdict: Verdict
    meaning: str
    remedy: str
    noise: float | None = None

    @property
    def anchor(self) -> str:
        """Where the documentation's page on checks explains it."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @property
    def reason(self) -> str:
        """The figure, what it says, and what would help."""
        return f"{self.name} is {self.value:.3g} ({self.meaning}); what would help: {self.remedy}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; infinite figures as None."""
        plain = {**asdict(self), "verdict": str(self.verdict)}
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in plain.items()}


def below(
    name: str, value: float, caution: float, alarm: float, meaning: str, remedy: str, noise: float | None = None
) -> Check:
    """A figure that should be small; one that is not a number is an alarm."""
    verdict = Verdict.DO_NOT_TRUST if not value <= alarm else Verdict.CAUTION if value > caution else Verdict.TRUST
    return Check(name, value, caution, alarm, verdict, meaning, remedy, noise)


def above(
    name: str, value: float, caution: float, alarm: float, meaning: str, remedy: str, noise: float | None = None
) -> Check:
    """A figure that should be large; one that is not a number is an alarm."""
    verdict = Verdict.DO_NOT_TRUST if not value >= alarm else Verdict.CAUTION if value < caution else Verdict.TRUST
    return Check(name, value, caution, alarm, verdict, meaning, remedy, noise)


def worst(checks: Iterable[Check]) -> Verdict:
    """The worst verdict of some checks; trust if there are none."""
    return worst_verdict(check.verdict for check in checks)


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of some verdicts; trust if there are none."""
    found = {*verdicts, Verdict.TRUST}
    return next(verdict for verdict in (Verdict.DO_NOT_TRUST, Verdict.CAUTION, Verdict.TRUST) if verdict in found)


def named_reasons(parts: Iterable[tuple[str, Verdict, Iterable[str]]]) -> tuple[str, ...]:
    """Why the worst verdict of several named parts is not better, each reason with the name of its part."""
    parts = list(parts)
    verdict = worst_verdict(own for _, own, _ in parts)
    if verdict is Verdict.TRUST:
        return ()
    return tuple(f"{name}: {reason}" for name, own, found in parts if own is verdict for reason in found)


def because(verdict: Verdict, found: Iterable[str], width: int = 0) -> list[str]:
    """A verdict and its reasons as lines of text, with names of this width."""
    rows = [("verdict", str(verdict)), *(("  because", reason) for reason in found)]
    return [f"{name:<{width}}{text}" for name, text in rows]


def reasons(checks: Iterable[Check]) -> list[str]:
    """Why the verdict on some checks is not better, each with what would help; empty for trust."""
    checks = list(checks)
    verdict = worst(checks)
    return [check.reason for check in checks if check.verdict is verdict and verdict is not Verdict.TRUST]
