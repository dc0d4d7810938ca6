"""The checks as a strip: each figure on a line from good to bad, with its two thresholds at fixed places."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from gradientdice.report.digits import figure
from gradientdice.report.explanations import explanation
from gradientdice.statistics.checks import Check, Verdict

# Where the thresholds lie on the line, in per cent of its length.
CAUTION_AT, ALARM_AT = 50.0, 80.0


@dataclass(frozen=True)
class Line:
    """One check as the page shows it.

    Attributes:
        check: the check.
        place: where its figure lies on the line, in per cent.
        value: the figure as text.
        limits: its thresholds as text.
        explanation: what it means, a paragraph of HTML; empty for a check that is not the library's own.
    """

    check: Check
    place: float
    value: str
    limits: str
    explanation: str


def strip(checks: Iterable[Check]) -> list[Line]:
    """The checks, worst first."""
    lines = [
        Line(check, place(check), figure(check.value), limits(check), explanation(check.anchor)) for check in checks
    ]
    return sorted(lines, key=lambda line: -line.place)


def worst_line(checks: Iterable[Check]) -> Line | None:
    """The check that matters most; None if all are well."""
    found = strip(checks)
    return found[0] if found and found[0].check.verdict is not Verdict.TRUST else None


def place(check: Check) -> float:
    """From 0, as good as can be, to 100: the thresholds are at fixed places, and what is far beyond is near the end."""
    value, caution, alarm = check.value, check.caution, check.alarm
    if not math.isfinite(value):
        return 100.0
    if _large_is_good(check):
        value, caution, alarm = (_inverse(number) for number in (value, caution, alarm))
    if check.verdict is Verdict.TRUST:
        return CAUTION_AT * max(value, 0.0) / caution if caution > 0 else 0.0
    if check.verdict is Verdict.CAUTION:
        return CAUTION_AT + (ALARM_AT - CAUTION_AT) * (value - caution) / (alarm - caution)
    beyond = alarm / value if math.isfinite(value) else 0.0
    return 100.0 - (100.0 - ALARM_AT) * min(max(beyond, 0.0), 1.0)


def limits(check: Check) -> str:
    """The thresholds in words."""
    side = "below" if _large_is_good(check) else "above"
    if check.caution == check.alarm:
        return f"alarm {side} {figure(float(check.alarm))}"
    return f"caution {side} {figure(float(check.caution))}, alarm {side} {figure(float(check.alarm))}"


def _large_is_good(check: Check) -> bool:
    return check.caution > check.alarm


def _inverse(number: float) -> float:
    return 1 / number if number > 0 else math.inf
