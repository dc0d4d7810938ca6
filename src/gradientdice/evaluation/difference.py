"""Differences of estimates from one log: paired, so that what moves both alike cancels.

    ρ̂₁ − ρ̂₂,   error = Σ over units of (share in the first − share in the second).

The interval is made as that of a value is (`evaluation/interval.py`), from the differences of the shares; what widens
the two intervals for other reasons is combined cause by cause (`inference/room.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from gradientdice.base.errors import InputError
from gradientdice.evaluation.interval import Intervals, whole_interval
from gradientdice.statistics.checks import Verdict
from gradientdice.statistics.possible import PossibleRange
from gradientdice.statistics.sources import ErrorSources, Sources

if TYPE_CHECKING:
    from gradientdice.evaluation.estimate import Estimate

Decision = Literal["better", "worse", "undecided"]
SIGNS: dict[Decision, int] = {"better": 1, "worse": -1, "undecided": 0}


@dataclass(frozen=True, eq=False)
class Difference:
    """The difference of two values, estimated from one log.

    Attributes:
        value: the first less the second.
        interval: (low, high).
        standard_error: with everything in it that widens the interval.
        sampling_error: the part of it that is sampling noise.
        confidence: of the interval.
        discount: γ.
        baseline: the second value.
        verdict: the worse of the two estimates' verdicts.
        reasons: why it is not better.
        sources: what the interval was made of.
    """

    value: float
    interval: tuple[float, float]
    standard_error: float
    sampling_error: float
    confidence: float
    discount: float
    baseline: float
    verdict: Verdict
    reasons: tuple[str, ...]
    sources: Sources = field(repr=False)

    @property
    def decision(self) -> Decision:
        """Whether the interval says that the first is better, worse, or neither."""
        low, high = self.interval
        return "better" if low > 0 else "worse" if high < 0 else "undecided"

    @property
    def sign(self) -> int:
        """1 if the first is better, −1 if it is worse, 0 if the interval leaves that open."""
        return SIGNS[self.decision]

    @property
    def text(self) -> str:
        """The difference in one line."""
        low, high = self.interval
        return f"{self.value:.6g} ({low:.6g} to {high:.6g}) over {self.baseline:.6g}: {self.decision}"

    def __str__(self) -> str:
        low, high = self.interval
        rows = [
            ("difference", f"{self.value:.6g}  ({_criterion(self.discount)})"),
            (f"{self.confidence:.0%} interval", f"{low:.6g} to {high:.6g}"),
            ("standard error", f"{self.standard_error:.3g}"),
            ("decision", self.decision),
            ("verdict", str(self.verdict)),
            *(("  because", reason) for reason in self.reasons),
        ]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)

    __repr__ = __str__  # in a terminal an answer shows itself as `print` shows it

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "value": self.value,
            "interval": list(self.interval),
            "standard_error": self.standard_error,
            "sampling_error": self.sampling_error,
            "confidence": self.confidence,
            "discount": self.discount,
            "baseline": self.baseline,
            "decision": self.decision,
            "verdict": str(self.verdict),
            "reasons": list(self.reasons),
        }


@dataclass(frozen=True, eq=False)
class Compared:
    """One side of a difference: an estimate, or the behaviour's own value.

    Attributes:
        sources: of its error.
        verdict: whether to believe it.
        reasons: why the verdict is not better.
    """

    sources: Sources
    verdict: Verdict = Verdict.TRUST
    reasons: tuple[str, ...] = ()

    @classmethod
    def of(cls, estimate: Estimate) -> Compared:
        """An estimate as a side of a difference; an error if it has no influence values."""
        if estimate.sources is None:
            raise InputError(
                f"{estimate.estimator} gives no influence values here, and a difference needs them. Use the closed "
                "form, or the default estimator."
            )
        return cls(estimate.sources, estimate.verdict, tuple(estimate.reasons))


def subtract(one: Estimate, other: Estimate) -> Difference:
    """The difference of two estimates.

    Raises:
        InputError: if they come from different logs, or have different discounts or confidences.
    """
    first, second = Compared.of(one), Compared.of(other)
    # Those of scanned logs know themselves whether they can be paired.
    logs = {side.sources.log for side in (first, second) if isinstance(side.sources, ErrorSources)}
    if len(logs) > 1:
        raise InputError(
            "The estimates come from different logs, so that their errors cannot be paired. Evaluate both policies on "
            "the same log."
        )
    for name in ("discount", "confidence"):
        mine, theirs = getattr(one, name), getattr(other, name)
        if mine != theirs:
            raise InputError(
                f"The estimates have different {name}s, {mine:g} and {theirs:g}. Evaluate both with the same {name}."
            )
    return difference(first, second, one.discount, one.intervals, one.possible)


def difference(
    first: Compared, second: Compared, discount: float, intervals: Intervals, possible: PossibleRange
) -> Difference:
    """The difference of two sides that come from one log.

    Args:
        first: from which the other is taken off.
        second: the other.
        discount: γ of both.
        intervals: how the sampling error's interval is made.
        possible: the range of both values: it bounds the difference too.
    """
    sources = first.sources.minus(second.sources)
    whole = whole_interval(sources, intervals)
    verdict, reasons = worse((first, second))
    return Difference(
        sources.value,
        possible.differences.cut_interval(whole.ends),
        whole.standard_error,
        whole.sampling_error,
        intervals.confidence,
        discount,
        second.sources.value,
        verdict,
        reasons,
        sources,
    )


def worse(sides: tuple[Compared, Compared]) -> tuple[Verdict, tuple[str, ...]]:
    """The worse of two verdicts, and the reasons of those that have it."""
    order = [Verdict.TRUST, Verdict.CAUTION, Verdict.DO_NOT_TRUST]
    verdict = max((side.verdict for side in sides), key=order.index)
    reasons = [reason for side in sides if side.verdict is verdict for reason in side.reasons]
    return verdict, tuple(dict.fromkeys(reasons))


def _criterion(discount: float) -> str:
    return "average reward" if discount == 1 else f"discount {discount:g}"
