"""`Ranking`: several policies on one log, with what can be said about all of them at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradientdice.base.errors import InputError
from gradientdice.evaluation.difference import Compared, Difference, difference
from gradientdice.evaluation.estimate import Estimate
from gradientdice.evaluation.interval import whole_interval
from gradientdice.evaluation.shown import shown
from gradientdice.statistics.checks import Verdict, because, named_reasons, worst_verdict
from gradientdice.statistics.simultaneous import best_probabilities, best_set, joint_confidence
from gradientdice.statistics.sources import Sources

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

BEHAVIOR = "behavior"
COLUMNS = (
    "policy",
    "value",
    "low",
    "high",
    "difference",
    "difference_low",
    "difference_high",
    "simultaneous_low",
    "simultaneous_high",
    "probability_best",
    "in_best_set",
    "verdict",
)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Several policies on one log at one discount.

    Attributes:
        estimates: of each policy, in the order in which they were given.
        baseline: "behavior", or the name of the policy that the others are compared with.
        side: the baseline's value, with the sources of its error.
    """

    estimates: dict[str, Estimate]
    baseline: str
    side: Compared

    @property
    def discount(self) -> float:
        """γ."""
        return self._any.discount

    @property
    def confidence(self) -> float:
        """Of each interval, of all simultaneous ones together, and of the best set."""
        return self._any.confidence

    @property
    def names(self) -> tuple[str, ...]:
        """The policies, best first."""
        return tuple(sorted(self.estimates, key=lambda name: (-self.estimates[name].value, name)))

    @cached_property
    def differences(self) -> dict[str, Difference]:
        """Each policy's value less the baseline's, paired; best first."""
        return {
            name: difference(Compared.of(estimate), self.side, estimate.discount, estimate.intervals, estimate.possible)
            for name, estimate in self._ordered
        }

    @cached_property
    def simultaneous(self) -> dict[str, tuple[float, float]]:
        """Intervals of the differences that hold for all policies at once; best first."""
        compared = [found.sources for name, found in self.differences.items() if name != self.baseline]
        confidence = joint_confidence(compared, self.confidence) if compared else self.confidence
        return {name: self.interval_at(found.sources, confidence) for name, found in self.differences.items()}

    @cached_property
    def probability_best(self) -> dict[str, float]:
        """How probable it is that each policy's value is the largest of all policies'.

        It is the share of draws from the joint normal distribution of the errors, around the estimates, in which the
        policy has the largest value. It says what a reader should believe who had no opinion beforehand; it is not the
        chance that a test is right.
        """
        found = best_probabilities(self._sources, self.confidence)
        return {name: float(share) for (name, _), share in zip(self._ordered, found, strict=True)}

    @cached_property
    def best_set(self) -> tuple[str, ...]:
        """The policies that may be the best one; the best one is among them with the given confidence."""
        kept = best_set(self._sources, self.confidence, lambda sources, level: self.interval_at(sources, level)[0])
        return tuple(name for (name, _), may in zip(self._ordered, kept, strict=True) if may)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the policies that may be the best."""
        return self.verdict_on(self.best_set)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdict is not better, each with the policy's name."""
        return self.reasons_for(self.best_set)

    def verdict_on(self, names: Iterable[str]) -> Verdict:
        """The worst verdict of some policies."""
        return worst_verdict(self.estimates[name].verdict for name in names)

    def reasons_for(self, names: Iterable[str]) -> tuple[str, ...]:
        """Why the verdict on some policies is not better, each with the policy's name."""
        return named_reasons((name, self.estimates[name].verdict, self.estimates[name].reasons) for name in names)

    @property
    def table(self) -> pd.DataFrame:
        """One row per policy, best first; the simultaneous interval is that of the difference."""
        import pandas as pd

        return pd.DataFrame(self._rows(), columns=list(COLUMNS))

    def __str__(self) -> str:
        return "\n".join([self.text, *because(self.verdict, self.reasons, 11)])

    @property
    def text(self) -> str:
        """The policies in a table of text, without the verdict on all of them."""
        rows = self._rows()
        lines = [
            f"{len(rows)} policies at {'the average reward' if self.discount == 1 else f'discount {self.discount:g}'}, "
            f"compared with {self.baseline_text} "
            f"({self.side.sources.value:.6g})"
        ]
        width = max(6, *(len(row["policy"]) for row in rows))
        lines.append(f"{'policy':<{width}}  {'value (interval)':<36}  {'difference (interval)':<36}  P(best)  verdict")
        for row in rows:
            value = f"{row['value']:.5g} ({row['low']:.5g} to {row['high']:.5g})"
            apart = f"{row['difference']:.5g} ({row['difference_low']:.5g} to {row['difference_high']:.5g})"
            mark = "*" if row["in_best_set"] else " "
            lines.append(
                f"{row['policy']:<{width}}  {value:<36}  {apart:<36}  {row['probability_best']:>6.1%}{mark} "
                f"{row['verdict']}"
            )
        lines.append(f"* may be the best: the best policy is among these with {self.confidence:.0%} confidence")
        return "\n".join(lines)

    __repr__ = __str__  # in a terminal an answer shows itself as `print` shows it

    def _repr_html_(self) -> str:
        return shown(self, "cell")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types: the table's rows, best first, and each estimate."""
        return {
            "discount": self.discount,
            "confidence": self.confidence,
            "baseline": self.baseline,
            "baseline_value": self.side.sources.value,
            "best_set": list(self.best_set),
            "overall_verdict": str(self.verdict),
            "reasons": list(self.reasons),
            "policies": self._rows(),
            "estimates": {name: estimate.to_dict() for name, estimate in self._ordered},
        }

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def plot(self) -> Figure:
        """The differences to the baseline, and how probably each policy is the best: a matplotlib figure."""
        return shown(self, "plot")

    def report(self, path: str | Path, *, force: bool = False) -> None:
        """Writes one self-contained HTML file; replaces one only with `force`."""
        shown(self, "report", path, force=force)

    @property
    def baseline_text(self) -> str:
        """What the baseline is called in a sentence."""
        return "the behaviour" if self.baseline == BEHAVIOR else self.baseline

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for name, estimate in self._ordered:
            found = self.differences[name]
            assert estimate.interval is not None
            cells = (
                name,
                estimate.value,
                *estimate.interval,
                found.value,
                *found.interval,
                *self.simultaneous[name],
                self.probability_best[name],
                name in self.best_set,
                str(estimate.verdict),
            )
            rows.append(dict(zip(COLUMNS, cells, strict=True)))
        return rows

    def interval_at(self, sources: Sources, confidence: float) -> tuple[float, float]:
        """The interval of a difference at another confidence."""
        whole = whole_interval(sources, replace(self._any.intervals, confidence=confidence))
        return self._any.possible.differences.cut_interval(whole.ends)

    @property
    def _any(self) -> Estimate:
        return next(iter(self.estimates.values()))

    @property
    def _ordered(self) -> list[tuple[str, Estimate]]:
        return [(name, self.estimates[name]) for name in self.names]

    @property
    def _sources(self) -> list[Sources]:
        return [Compared.of(estimate).sources for _, estimate in self._ordered]


@dataclass(frozen=True, eq=False)
class DiscountRankings(Mapping[float, Ranking]):
    """A ranking for each of several discounts.

    Attributes:
        rankings: by discount, in the order in which these were given.
    """

    rankings: dict[float, Ranking]

    def __getitem__(self, discount: float) -> Ranking:
        return self.rankings[discount]

    def __iter__(self) -> Iterator[float]:
        return iter(self.rankings)

    def __len__(self) -> int:
        return len(self.rankings)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the rankings."""
        return worst_verdict(ranking.verdict for ranking in self.values())

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdict is not better, each with its discount and the policy's name."""
        return named_reasons((f"discount {own:g}", ranking.verdict, ranking.reasons) for own, ranking in self.items())

    @property
    def table(self) -> pd.DataFrame:
        """The rankings' tables below each other, with the discount as the first column."""
        import pandas as pd

        parts = [ranking.table for ranking in self.rankings.values()]
        for discount, part in zip(self.rankings, parts, strict=True):
            part.insert(0, "discount", discount)
        return pd.concat(parts, ignore_index=True)

    def __str__(self) -> str:
        return "\n\n".join(str(ranking) for ranking in self.rankings.values())

    __repr__ = __str__  # in a terminal an answer shows itself as `print` shows it

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types: a list of rankings, and the verdict on all of them."""
        return {
            "overall_verdict": str(self.verdict),
            "reasons": list(self.reasons),
            "rankings": [ranking.to_dict() for ranking in self.rankings.values()],
        }

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)


def require_baseline(baseline: object, names: Mapping[str, Any]) -> str:
    """The baseline's name, or an error that says which there are."""
    if not isinstance(baseline, str) or (baseline != BEHAVIOR and baseline not in names):
        known = ", ".join([repr(BEHAVIOR), *(repr(name) for name in list(names)[:8])])
        raise InputError(f"baseline must be one of {known}, not {baseline!r:.60}.")
    return baseline
