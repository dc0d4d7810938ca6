"""A posterior as draws: of one policy's value, or of several policies' with shared draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from gradientdice.base.errors import InputError, require_number
from gradientdice.evaluation.shown import shown
from gradientdice.statistics.checks import Verdict, because, named_reasons, worst_verdict
from gradientdice.statistics.intervals import require_confidence

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of a policy's value.

    Attributes:
        draws: (d,) the value in each draw: (1−γ)-normalised below discount 1, the average reward at 1.
        value: the estimate that the draws are around: of the log itself, without weights or prior.
        discount: γ.
        model: how the draws were made, in words.
        notes: the prior, and what else the reader should know.
        verdict: of the estimate that the draws are around: whether to believe it.
        reasons: why the verdict is not better.
    """

    draws: Float[np.ndarray, " d"]
    value: float
    discount: float
    model: str
    notes: tuple[str, ...] = ()
    verdict: Verdict = Verdict.TRUST
    reasons: tuple[str, ...] = ()

    @property
    def mean(self) -> float:
        """The posterior's mean."""
        return float(self.draws.mean())

    @property
    def standard_deviation(self) -> float:
        """The posterior's standard deviation."""
        return float(self.draws.std(ddof=1))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The central interval that has this probability."""
        tail = (1 - require_confidence(level)) / 2
        low, high = np.quantile(self.draws, [tail, 1 - tail])
        return float(low), float(high)

    def probability(self, *, above: float | None = None, below: float | None = None) -> float:
        """The probability that the value lies above a number, below one, or between two.

        Example:
            >>> import numpy as np
            >>> from gradientdice.evaluation.posterior.result import Posterior
            >>> Posterior(np.arange(10.0), 4.5, 0.9, "ten numbers").probability(
            ...     above=2.5, below=6.5
            ... )
            0.4
        """
        if above is None and below is None:
            raise InputError("probability needs above= or below=, or both: the numbers to compare the value with.")
        inside = np.ones(len(self.draws), dtype=bool)
        if above is not None:
            inside &= self.draws > require_number("above", above)
        if below is not None:
            inside &= self.draws < require_number("below", below)
        return float(inside.mean())

    def __str__(self) -> str:
        low, high = self.interval()
        criterion = "average reward" if self.discount == 1 else f"discount {self.discount:g}"
        rows = [
            ("posterior mean", f"{self.mean:.6g}  ({criterion})"),
            ("95% interval", f"{low:.6g} to {high:.6g}"),
            ("standard deviation", f"{self.standard_deviation:.3g}"),
            ("value of the log itself", f"{self.value:.6g}"),
            ("verdict", str(self.verdict)),
            *(("  because", reason) for reason in self.reasons),
            ("model", f"{self.model}, {len(self.draws):,} draws"),
            *(("note", note) for note in self.notes),
        ]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)

    __repr__ = __str__  # in a terminal an answer shows itself as `print` shows it

    def plot(self) -> Figure:
        """The draws as a histogram, with mean and interval: a matplotlib figure."""
        return shown(self, "plot")


@dataclass(frozen=True, eq=False)
class PosteriorRanking(Mapping[str, Posterior]):
    """Posteriors of several policies whose draws go together: draw i of all of them is of one and the same world.

    Attributes:
        posteriors: by name.
    """

    posteriors: dict[str, Posterior]

    def __getitem__(self, name: str) -> Posterior:
        return self.posteriors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.posteriors)

    def __len__(self) -> int:
        return len(self.posteriors)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the policies' estimates."""
        return worst_verdict(posterior.verdict for posterior in self.values())

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdict is not better, each with the policy's name."""
        return named_reasons((name, posterior.verdict, posterior.reasons) for name, posterior in self.items())

    @cached_property
    def draws(self) -> Float[np.ndarray, "d P"]:
        """The values, a column for each policy."""
        return np.column_stack([posterior.draws for posterior in self.posteriors.values()])

    @property
    def probability_best(self) -> dict[str, float]:
        """The probability that each policy is the best of these; policies that tie share it."""
        best = self.draws >= self.draws.max(axis=1, keepdims=True)
        return dict(zip(self, (best / best.sum(axis=1, keepdims=True)).mean(axis=0).tolist(), strict=True))

    @property
    def regret(self) -> dict[str, Float[np.ndarray, " d"]]:
        """What is lost in each draw if this policy is taken and not the best."""
        lost = self.draws.max(axis=1, keepdims=True) - self.draws
        return dict(zip(self, lost.T, strict=True))

    @property
    def ranks(self) -> dict[str, Float[np.ndarray, " P"]]:
        """The probability that each policy is the first, the second, … of these."""
        place = np.argsort(np.argsort(-self.draws, axis=1, kind="stable"), axis=1, kind="stable")
        count = len(self)
        return {name: np.bincount(place[:, number], minlength=count) / len(place) for number, name in enumerate(self)}

    def difference(self, name: str, other: str) -> Posterior:
        """The posterior of one policy's value less another's."""
        for known in (name, other):
            if not isinstance(known, str) or known not in self:
                raise InputError(f"There is no policy {known!r:.60}: the names are {', '.join(map(str, self))}.")
        one, two = self[name], self[other]
        pair = [(own, self[own].verdict, self[own].reasons) for own in dict.fromkeys((name, other))]
        return Posterior(
            one.draws - two.draws,
            one.value - two.value,
            one.discount,
            one.model,
            one.notes,
            worst_verdict(verdict for _, verdict, _ in pair),
            named_reasons(pair),
        )

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per policy, the highest mean first."""
        import pandas as pd

        regret = self.regret
        rows = [
            {
                "policy": name,
                "mean": posterior.mean,
                "low": posterior.interval()[0],
                "high": posterior.interval()[1],
                "probability_best": self.probability_best[name],
                "expected_regret": float(regret[name].mean()),
                "regret_high": float(np.quantile(regret[name], 0.95)),
                "verdict": str(posterior.verdict),
            }
            for name, posterior in self.items()
        ]
        return pd.DataFrame(rows).sort_values("mean", ascending=False, ignore_index=True)

    def __str__(self) -> str:
        first = next(iter(self.values()))
        lines = [self.table.to_string(index=False, float_format=lambda number: f"{number:.4g}")]
        lines.append(f"{first.model}, {len(first.draws):,} draws that the policies share")
        return "\n".join([*lines, *first.notes, *because(self.verdict, self.reasons, 11)])

    __repr__ = __str__  # in a terminal an answer shows itself as `print` shows it

    def plot(self) -> Figure:
        """Each policy's posterior, and its probability of being the best: a matplotlib figure."""
        return shown(self, "plot")
