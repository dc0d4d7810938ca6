"""The answer: a number, an interval, and the evidence for trusting it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from gradientdice.dice.solution import Solution, Status
from gradientdice.evaluation.baseline import BehaviorSide
from gradientdice.evaluation.difference import Compared, Difference, difference, subtract
from gradientdice.evaluation.interval import Intervals, whole_interval
from gradientdice.evaluation.metrics import metrics
from gradientdice.evaluation.shown import shown
from gradientdice.statistics.behavior import BehaviorValue
from gradientdice.statistics.checks import Check, Verdict, reasons, worst
from gradientdice.statistics.diagnostics import Diagnostics
from gradientdice.statistics.footprint import Footprint, Movement
from gradientdice.statistics.influence import Influence
from gradientdice.statistics.possible import PossibleRange
from gradientdice.statistics.shares import EachShare
from gradientdice.statistics.sources import ErrorSources, Sources

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


# Of what `to_dict` gives; a field that changes its meaning makes a new one.
SCHEMA_VERSION = 1
# Shown only where the behaviour's value is not known: two numbers for what runs today would be one too many.
MEAN_REWARD, NOT_THE_VALUE = "mean logged reward", "not the behaviour's value at this discount"
NOT_YET = "not computed yet; ask estimate.{}"
NO_RATIO = (
    "the estimator has no ratio, so that nothing says how well the log covers the policy; what would help: compare"
)


@dataclass(frozen=True, eq=False)
class Estimate:
    """The estimated value of a policy.

    Attributes:
        value: ρ_γ: (1−γ)-normalised below discount 1, the average reward at 1.
        interval: (low, high), or None if the solver gives no influence values.
        standard_error: of the value, with everything in it that widens the interval: where an interval of sampling
            noise is ± 1.96 standard errors, so is this one. None without an interval.
        sampling_error: the part of it that is sampling noise.
        confidence: of the interval.
        discount: γ.
        estimator: its name and settings.
        functions: the function class.
        ratio: τ at each transition; None if the estimator has none, or the log was scanned.
        behavior_seen: what the log's episodes show of the behaviour's value, where steps beyond the time limits are
            taken to be like those before; None below discount 1 if there are none in time order. It is cheap, and may
            be far off where time limits cut much: `behavior` is the value to read.
        behavior_mean: the log's own (weighted) mean reward. Another quantity than the behaviour's value: it knows no
            discount, and counts every logged step alike.
        diagnostics: the evidence; None without a ratio.
        status: how the solve ended.
        solution: the parameters behind it; None if no system was solved.
        num_rows: transitions used.
        num_clusters: independent units: episodes, or rows; exact copies of one are one.
        movements: where the target's mass moves.
        notes: what the reader should know about how it was made.
        cautions: reasons why the value may not be the policy's, whatever the diagnostics say.
        provenance: versions and settings.
        further_checks: the interval's width, and tests of what the answer assumes about the log.
        uncut_value: the value before it was cut to what the rewards allow; None if it lay inside.
        influence: each row's and each initial state's share in the error, for functionals of your own; None if the
            solver gives none, or the log was scanned. `influence.rows[i]` is, to first order, how much row i moved the
            value away from what all other logs of this size would say on average; without row i the value would be
            about that much lower. The shares of one kind add up to 0. The variance of the sampling error is the sum of
            the squared shares of independent units: see `unit_shares`.
        behavior_side: the behaviour's own value as the other side of `improvement`. Where it needs a search it is
            computed when `improvement` or `behavior` is first asked for. Until then it keeps the log alive, and nothing
            else; then the sources of the value's error alone.
        sources: what the interval was made of.
        intervals: how it was made.
        possible: the range of values that the rewards allow.
        footprint: which rows carry the answer, when in the episodes and where; None without a ratio, or if the log was
            scanned.
    """

    value: float
    interval: tuple[float, float] | None
    standard_error: float | None
    sampling_error: float | None
    confidence: float
    discount: float
    estimator: str
    functions: str
    ratio: Float[np.ndarray, " n"] | None
    behavior_seen: BehaviorValue | None
    behavior_mean: float
    diagnostics: Diagnostics | None
    status: Status
    solution: Solution | None
    num_rows: int
    num_clusters: int
    movements: tuple[Movement, ...]
    notes: tuple[str, ...]
    provenance: dict[str, Any]
    cautions: tuple[str, ...] = ()
    further_checks: tuple[Check, ...] = ()
    uncut_value: float | None = None
    influence: Influence | None = field(default=None, repr=False)
    behavior_side: BehaviorSide = field(default=BehaviorSide.known(None), repr=False)
    sources: Sources | None = field(default=None, repr=False)
    intervals: Intervals = field(default_factory=Intervals, repr=False)
    possible: PossibleRange = PossibleRange(-np.inf, np.inf)
    footprint: Footprint | None = field(default=None, repr=False)

    def __sub__(self, other: object) -> Difference:
        """The difference of two values from one log, paired by the log's units.

        Both must be estimates from the same log (the same columns in the same order, whichever objects hold them), at
        the same discount and confidence. Those of a scanned log must come from one call, of `rank` say.
        """
        return subtract(self, other) if isinstance(other, Estimate) else NotImplemented

    @cached_property
    def behavior(self) -> BehaviorValue | None:
        """The behaviour's own value at the same discount, with its interval: what `improvement` is the difference to.

        It is the mean over the log's episodes, continued where time limits cut off a part that matters; without
        episodes it is the value of the log's Markov reward process. Where neither can be computed, as with a scanned
        log and no influence values, it is `behavior_seen`; None where that is not known either. Where it did not come
        with the answer, it is computed when it is first asked for, at the cost that `improvement` describes.
        """
        side, seen = self.behavior_side.value, self.behavior_seen
        if side is None:
            return seen
        sources, interval = side.sources, None
        # A single episode gives a value and no error.
        if min(len(shares) for shares in sources.samples) > 1:
            interval = self.possible.cut_interval(whole_interval(sources, self.intervals).ends)
        return BehaviorValue(sources.value, interval, 0.0 if seen is None else seen.unseen)

    @cached_property
    def improvement(self) -> Difference | None:
        """The value less the behaviour's own, with its paired interval.

        None where the behaviour's value is not known, or there are no influence values. The behaviour's value comes
        with the answer where whole episodes show it, or where the log is that of a small table. Elsewhere it is
        computed when it is first asked for: on continuous states that may take longer than the value itself, since
        features for it are searched for. `to_dict`, `to_json`, `plot`, `report`, pickling and the command line ask
        for it; `print`, `repr`, a notebook's cell, `metrics` and `to_frame` show it only where it is known.
        """
        behavior = None if self.sources is None else self.behavior_side.value
        if behavior is None:
            return None
        return difference(Compared.of(self), behavior, self.discount, self.intervals, self.possible)

    @property
    def unit_shares(self) -> EachShare:
        """The influence values summed by independent unit, as the interval has them; empty if none are kept.

        The first array has a share for each episode (each row, without episodes; copies are one unit). A second one
        has a share for each initial state, where these are given apart from the rows. With n units s of a kind, the
        variance of the sampling error is the sum over kinds of n/(n−1) Σ (s − s̄)². With a table, shares of pairs that
        have few rows are enlarged, because their own mean was fitted to them.
        """
        return self.sources.samples if isinstance(self.sources, ErrorSources) else []

    @property
    def checks(self) -> list[Check]:
        """Everything that was checked: the ratio and the solve, the interval, and what is assumed about the log."""
        return [*([] if self.diagnostics is None else self.diagnostics.checks()), *self.further_checks]

    @property
    def total(self) -> float | None:
        """Value / (1−γ), the expected discounted return; None at discount 1."""
        return None if self.discount == 1 else self.value / (1 - self.discount)

    @property
    def verdict(self) -> Verdict:
        """trust, caution or do not trust."""
        if not self.status.ok:
            return Verdict.DO_NOT_TRUST
        found = worst(self.checks)
        doubted = self.diagnostics is None or bool(self.cautions)
        return Verdict.CAUTION if doubted and found is Verdict.TRUST else found

    @property
    def reasons(self) -> list[str]:
        """Why the verdict is not better."""
        if not self.status.ok:
            return [self.status.message]
        unknown = [NO_RATIO] if self.diagnostics is None else []
        return [*reasons(self.checks), *unknown, *self.cautions]

    @property
    def error_text(self) -> str:
        """The standard error, and how much of it is sampling noise."""
        if self.standard_error is None or self.sampling_error is None:
            return ""
        text = f"{self.standard_error:.3g}"
        other = self.standard_error > 1.01 * self.sampling_error
        return f"{text}, of which sampling noise {self.sampling_error:.3g}" if other else text

    @property
    def behavior_text(self) -> str:
        """The behaviour's value with its interval."""
        if self.behavior is None:
            return ""
        text = f"{self.behavior.value:.6g}"
        if self.behavior.interval is not None:
            text += f" ({self.behavior.interval[0]:.6g} to {self.behavior.interval[1]:.6g})"
        unseen = self.behavior.unseen
        return f"{text}; {unseen:.0%} of the discounted horizon was never recorded" if unseen > 0.05 else text

    def rows(self) -> list[tuple[str, str]]:
        """The summary as pairs of a name and a text: of what is known, so that nothing is searched for."""
        criterion = "average reward" if self.discount == 1 else f"discount {self.discount:g}"
        rows = [("value", f"{self.value:.6g}  ({criterion})")]
        if self.interval is not None:
            rows.append((f"{self.confidence:.0%} interval", f"{self.interval[0]:.6g} to {self.interval[1]:.6g}"))
            rows.append(("standard error", self.error_text))
        if self.total is not None:
            rows.append(("value / (1 − γ)", f"{self.total:.6g}"))
        rows += self._behavior_rows()
        rows.append(("verdict", str(self.verdict)))
        rows += [("  because", reason) for reason in self.reasons]
        units = f"{self.num_rows:,} transitions"
        if self.num_clusters != self.num_rows:
            units += f" in {self.num_clusters:,} independent units"
        if self.diagnostics is not None:
            units += f", effective {self.diagnostics.effective_sample_size:,.0f}"
        rows.append(("data", units))
        rows.append(("method", f"{self.estimator} on {self.functions}" if self.functions else self.estimator))
        rows += [("note", note) for note in self.notes]
        return rows

    def _behavior_rows(self) -> list[tuple[str, str]]:
        """The behaviour's value and the improvement on it, or how to get them."""
        if not self.behavior_side.is_known:
            if self.sources is None:
                return [("behaviour's value", NOT_YET.format("behavior"))]
            return [("improvement", NOT_YET.format("improvement"))]
        if self.behavior is None:
            return [(MEAN_REWARD, f"{self.behavior_mean:.6g} ({NOT_THE_VALUE})")]
        rows = [("behaviour's value", self.behavior_text)]
        if self.improvement is not None:
            rows.append(("improvement", self.improvement.text))
        return rows

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)

    __repr__ = __str__  # in a terminal an answer shows itself as `print` shows it

    def _repr_html_(self) -> str:
        return shown(self, "cell")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, as `schema` describes them; the per-row ratio is left out."""
        within = None if self.behavior is None else self.behavior.interval
        return {
            "schema_version": SCHEMA_VERSION,
            "value": self.value,
            "uncut_value": self.uncut_value,
            "interval": None if self.interval is None else list(self.interval),
            "standard_error": self.standard_error,
            "sampling_error": self.sampling_error,
            "confidence": self.confidence,
            "discount": self.discount,
            "total": self.total,
            "behavior_value": None if self.behavior is None else self.behavior.value,
            "behavior_interval": None if within is None else list(within),
            "behavior_mean": self.behavior_mean,
            "improvement": None if self.improvement is None else self.improvement.to_dict(),
            "verdict": str(self.verdict),
            "reasons": self.reasons,
            "status": str(self.status),
            "estimator": self.estimator,
            "functions": self.functions,
            "num_rows": self.num_rows,
            "num_clusters": self.num_clusters,
            "movements": [asdict(movement) for movement in self.movements],
            "notes": list(self.notes),
            "checks": [check.to_dict() for check in self.checks],
            "diagnostics": None if self.diagnostics is None else self.diagnostics.to_dict(),
            "provenance": self.provenance,
        }

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    @staticmethod
    def schema() -> dict[str, Any]:
        """The JSON schema of `to_dict`."""
        text = files("gradientdice.evaluation").joinpath("estimate.schema.json").read_text(encoding="utf-8")
        return json.loads(text)

    def metrics(self) -> dict[str, float]:
        """The figures as plain floats, for trackers of experiments; the verdict is 2 (trust), 1 (caution) or 0.

        `behavior_value` is left out while it is not computed: ask for `behavior` first to have it.
        `behavior_mean`, the mean logged reward, is another quantity.
        """
        return metrics(self)

    def to_frame(self) -> pd.DataFrame:
        """One row: the figures of `metrics`, the verdict in words, the estimator and its functions."""
        import pandas as pd

        words = {"verdict": str(self.verdict), "estimator": self.estimator, "functions": self.functions}
        known = {"confidence": self.confidence, "discount": self.discount, "num_clusters": self.num_clusters}
        return pd.DataFrame([{**self.metrics(), **known, "num_rows": self.num_rows, **words}])

    def plot(self) -> Figure:
        """The value and its interval beside the behaviour's, and the ratio's distribution: a matplotlib figure."""
        return shown(self, "plot")

    def report(self, path: str | Path, *, comparison: pd.DataFrame | None = None, force: bool = False) -> None:
        """Writes one self-contained HTML file, with `compare`'s table if given; replaces one only with `force`."""
        shown(self, "report", path, comparison=comparison, force=force)
