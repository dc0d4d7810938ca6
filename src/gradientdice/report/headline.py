"""The answer in a few lines: what the first screen of a report says."""

from __future__ import annotations

from dataclasses import dataclass

from gradientdice.evaluation.difference import Difference
from gradientdice.evaluation.estimate import MEAN_REWARD, NOT_THE_VALUE, Estimate
from gradientdice.report.digits import figure, known_to
from gradientdice.report.plots import criterion
from gradientdice.report.strip import worst_line
from gradientdice.statistics.checks import Verdict


@dataclass(frozen=True)
class Headline:
    """What a reader sees first.

    Attributes:
        value: with the digits that are known.
        interval: a phrase.
        criterion: what the value is a value of.
        reason: why the verdict is what it is, a sentence.
        remedy: what would help; empty if nothing need.
        explanation: of the check behind the reason, as HTML; empty where no check is.
    """

    value: str
    interval: str
    criterion: str
    reason: str
    remedy: str = ""
    explanation: str = ""


def headline(estimate: Estimate) -> Headline:
    """The headline of an estimate; nothing in it needs the behaviour's value."""
    half = None if estimate.interval is None else (estimate.interval[1] - estimate.interval[0]) / 2
    interval = "no interval"
    if estimate.interval is not None:
        low, high = (known_to(end, half) for end in estimate.interval)
        interval = f"{estimate.confidence:.0%} interval {low} to {high}"
    value, of = known_to(estimate.value, half) or "no value", criterion(estimate.discount)
    return Headline(value, interval, of, *_reason(estimate))


def improvement_sentence(estimate: Estimate) -> str:
    """The improvement in a sentence; empty where it is not known. It is computed here if it has not been."""
    return "" if estimate.improvement is None else compared(estimate.improvement)


def compared(difference: Difference) -> str:
    """A difference to the behaviour in a sentence."""
    low, high = difference.interval
    half = (high - low) / 2
    ends = f"{known_to(low, half, signed=True)} to {known_to(high, half, signed=True)}"
    start = {
        "better": "Better than the behaviour in the log",
        "worse": "Worse than the behaviour in the log",
        "undecided": "Not shown to be better or worse than the behaviour in the log",
    }[difference.decision]
    return f"{start}: {known_to(difference.value, half, signed=True)} ({ends})."


def _reason(estimate: Estimate) -> tuple[str, str, str]:
    """Why the verdict is what it is, what would help, and what the check means."""
    if not estimate.status.ok:
        first, _, rest = estimate.status.message.partition(" Causes: ")
        return first, rest.partition("Remedies: ")[2] or rest.partition("Remedy: ")[2], ""
    line = worst_line(estimate.checks)
    others = len(estimate.reasons) - 1
    more = "" if others < 1 else " One more reason is below." if others == 1 else f" {others} more reasons are below."
    if line is not None:
        text = f"{sentence(line.check.name)}: {line.value} ({line.check.meaning}; {line.limits}).{more}"
        return text, line.check.remedy, line.explanation
    if estimate.verdict is Verdict.TRUST:
        return f"All {len(estimate.checks)} checks are within their limits.", "", ""
    text, _, remedy = estimate.reasons[0].partition("; what would help: ")
    return f"{sentence(text)}.{more}", remedy, ""


def facts(estimate: Estimate) -> list[tuple[str, str]]:
    """Figures beside the headline, as pairs of a name and a text."""
    half = None if estimate.interval is None else (estimate.interval[1] - estimate.interval[0]) / 2
    rows = figure(estimate.num_rows)
    found = [("transitions", rows)]
    if estimate.num_clusters != estimate.num_rows:
        found.append(("independent units", figure(estimate.num_clusters)))
    if estimate.diagnostics is not None:
        found.append(("effective sample size", figure(round(estimate.diagnostics.effective_sample_size))))
    if estimate.total is not None and estimate.discount > 0:
        whole = None if half is None else half / (1 - estimate.discount)
        found.append(("expected discounted return", known_to(estimate.total, whole)))
    if estimate.standard_error is not None:
        found.append(("standard error", figure(estimate.standard_error, 2)))
    if estimate.behavior is None:
        found.append((f"{MEAN_REWARD} ({NOT_THE_VALUE})", known_to(estimate.behavior_mean, half)))
    else:
        found.append(("behaviour's value", known_to(estimate.behavior.value, half)))
    return found


def sentence(text: str) -> str:
    """The text with a capital at its beginning."""
    return text[:1].upper() + text[1:]
