"""`DiscountCurve`: the value of one policy at several discounts, with a band that holds at all of them at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from gradientdice.base.errors import InputError, require_number
from gradientdice.evaluation.estimate import Estimate
from gradientdice.evaluation.interval import whole_interval
from gradientdice.evaluation.shown import shown
from gradientdice.statistics.checks import Verdict, because, named_reasons, worst_verdict
from gradientdice.statistics.simultaneous import joint_confidence
from gradientdice.statistics.sources import Sources

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class DiscountCurve(Sequence[Estimate]):
    """The estimates at several discounts, in the order in which these were given.

    Attributes:
        estimates: one for each discount.

    Example:
        >>> import numpy as np, gradientdice as gd
        >>> mdp, target = (
        ...     gd.mdp.boyan_chain("continuing"),
        ...     gd.TabularPolicy(np.tile([0.1, 0.9], (13, 1))),
        ... )
        >>> data = mdp.sample(5000, np.full((13, 2), 1 / 26), np.random.default_rng(0))
        >>> curve = gd.evaluate(data, target, discount=[0.5, 0.9, 1])
        >>> len(curve), curve.discounts
        (3, (0.5, 0.9, 1.0))
    """

    estimates: tuple[Estimate, ...]

    def __len__(self) -> int:
        return len(self.estimates)

    @overload
    def __getitem__(self, index: int) -> Estimate: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Estimate, ...]: ...
    def __getitem__(self, index: int | slice) -> Estimate | tuple[Estimate, ...]:
        return self.estimates[index]

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)

    @property
    def discounts(self) -> tuple[float, ...]:
        """The discounts, as they were given."""
        return tuple(estimate.discount for estimate in self.estimates)

    @cached_property
    def band(self) -> tuple[tuple[float, float], ...] | None:
        """Intervals that hold at all of the discounts at once; None if an estimate has no influence values."""
        sources = [own for estimate in self.estimates if (own := estimate.sources) is not None]
        if len(sources) < len(self.estimates):
            return None
        confidence = joint_confidence(sources, self.estimates[0].confidence)
        return tuple(_ends(*pair, confidence) for pair in zip(self.estimates, sources, strict=True))

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the estimates."""
        return worst_verdict(estimate.verdict for estimate in self)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdict is not better, each with its discount."""
        return named_reasons(
            (f"discount {estimate.discount:g}", estimate.verdict, estimate.reasons) for estimate in self
        )

    @property
    def table(self) -> pd.DataFrame:
        """One row per discount: value, interval, band, standard error, value / (1 − γ), verdict."""
        import pandas as pd

        return pd.DataFrame(self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        bands = self.band or ((None, None),) * len(self)
        rows = []
        for estimate, band in zip(self.estimates, bands, strict=True):
            low, high = estimate.interval or (None, None)
            rows.append(
                {
                    "discount": estimate.discount,
                    "value": estimate.value,
                    "low": low,
                    "high": high,
                    "band_low": band[0],
                    "band_high": band[1],
                    "standard_error": estimate.standard_error,
                    "total": estimate.total,
                    "verdict": str(estimate.verdict),
                }
            )
        return rows

    def __str__(self) -> str:
        lines = []
        for row in self._rows():
            text = f"discount {row['discount']:<7g} {row['value']:.6g}"
            if row["low"] is not None:
                text += f"  {row['low']:.6g} to {row['high']:.6g}  band {row['band_low']:.6g} to {row['band_high']:.6g}"
            lines.append(f"{text}  {row['verdict']}")
        confidence = self.estimates[0].confidence
        lines.append(f"Each interval holds with {confidence:.0%} confidence, the band at all discounts at once.")
        return "\n".join([*lines, *because(self.verdict, self.reasons, 11)])

    __repr__ = __str__  # in a terminal an answer shows itself as `print` shows it

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types: each estimate with its band."""
        bands = self.band or (None,) * len(self)
        return {
            "discounts": list(self.discounts),
            "overall_verdict": str(self.verdict),
            "reasons": list(self.reasons),
            "estimates": [
                {**estimate.to_dict(), "band": None if band is None else list(band)}
                for estimate, band in zip(self.estimates, bands, strict=True)
            ],
        }

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def plot(self) -> Figure:
        """The value over discounts with its band: a matplotlib figure."""
        return shown(self, "plot")

    def report(self, path: str | Path, *, force: bool = False) -> None:
        """Writes one self-contained HTML file; replaces one only with `force`."""
        shown(self, "report", path, force=force)


def _ends(estimate: Estimate, sources: Sources, confidence: float) -> tuple[float, float]:
    whole = whole_interval(sources, replace(estimate.intervals, confidence=confidence))
    return estimate.possible.cut_interval(whole.ends)


def require_discounts(discounts: Sequence[float]) -> list[float]:
    """The discounts, each of them a number from 0 to 1 and none twice."""
    if isinstance(discounts, (str, bytes)) or (isinstance(discounts, np.ndarray) and discounts.ndim != 1):
        raise InputError(f"discount must be a number or a list of numbers, not {discounts!r:.60}.")
    found = [require_number("discount", discount, low=0, high=1) for discount in discounts]
    if not found:
        raise InputError("discount is an empty list: give at least one discount.")
    if len(set(found)) < len(found):
        raise InputError(f"discount has one number twice: {found}.")
    return found
