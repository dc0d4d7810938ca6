"""The distribution of a return: its function, quantiles, variance and tail means, with bands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from gradientdice.base.arrays import as_floats
from gradientdice.base.errors import InputError, require_choice, require_number
from gradientdice.estimators.returns.points import StepFunction, monotone
from gradientdice.evaluation.shown import shown
from gradientdice.statistics.checks import Check, Verdict, because, reasons, worst, worst_verdict

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# How often the episodes are weighted anew for bands and intervals.
REPLICATIONS = 1000
# The levels that the table shows.
QUANTILES, TAILS = (0.05, 0.25, 0.5, 0.75, 0.95), (0.05, 0.25)

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Band:
    """A band that holds the whole distribution function with the confidence asked for.

    Attributes:
        points: (m,) returns, ascending.
        low: (m,) the lower end of the distribution function there.
        high: (m,) the upper end.
        half_width: of the sampling error's part, which is the same everywhere.
    """

    points: Float[np.ndarray, " m"]
    low: Float[np.ndarray, " m"]
    high: Float[np.ndarray, " m"]
    half_width: float


@dataclass(frozen=True, eq=False)
class ReturnDistribution:
    """The distribution of what one episode of the target policy returns, Σ_t γᵗ r_t.

    Attributes:
        function: the distribution function on its points.
        discount: γ; at 1 the return is the total until the end.
        horizon: after how many steps a return is complete; None is the end of the episode.
        confidence: of the band and of the intervals.
        source: "episodes", weighted logged episodes, or "model", simulated paths, which have no band.
        method: how it was found, in words.
        num_episodes: of the log; of simulated paths if the source is a model.
        effective_episodes: as many episodes of the target itself would have a mean of the same noise.
        notes: what the reader should know.
        seed: for the band.
        checks: of weighted episodes, how many they are worth and what they need of the log; of simulated paths, those
            of the estimate that rests on the same model, and whether the two agree.
        cautions: reasons why the distribution may not be the policy's, whatever the checks say.
    """

    function: StepFunction
    discount: float
    horizon: int | None
    confidence: float
    source: str
    method: str
    num_episodes: int
    effective_episodes: float
    notes: tuple[str, ...] = ()
    seed: int = 0
    checks: tuple[Check, ...] = ()
    cautions: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Trust, caution or do not trust: the worst of the checks, and caution at best where there are cautions."""
        return worst_verdict([worst(self.checks), *([Verdict.CAUTION] if self.cautions else [])])

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdict is not better, each with what would help."""
        return (*reasons(self.checks), *self.cautions)

    def cdf(self, x: ArrayLike) -> np.ndarray | float:
        """The probability of a return of at most x."""
        values = as_floats("x", x)
        if np.isnan(values).any():
            raise InputError("x has a NaN: give returns.")
        place = np.searchsorted(self.function.points, values, side="right")
        found = np.concatenate([[0.0], self.function.cdf])[place]
        return float(found) if found.ndim == 0 else found

    def quantile(self, p: float) -> float:
        """The smallest return that is reached or undercut with probability p."""
        return self.function.quantile(_level(p))

    def cvar(self, p: float) -> float:
        """The mean of the worst share p of the returns: conditional value at risk, of the lower tail."""
        return self.function.cvar(_level(p))

    @property
    def mean(self) -> float:
        """The mean return: value / (1−γ) of an `Estimate`."""
        return self.function.mean

    @property
    def variance(self) -> float:
        """The return's variance, between episodes of the target."""
        return self.function.variance

    @cached_property
    def band(self) -> Band | None:
        """A band for the whole function, by a bootstrap over episodes; None if the source is a model.

        Its half-width is the quantile of the largest distance between the function and those with the episodes
        weighted anew (exponential weights). What time limits cut off is added to both sides.
        """
        if self.function.shares is None:
            return None
        half = float(np.quantile(np.abs(self._moves).max(axis=1), self.confidence))
        points, low, high = self.function.points, self.function.cdf, self.function.cdf
        if self.function.ends is not None:
            least, most = self.function.ends
            points = np.unique(np.concatenate([points, least.points, most.points]))
            # The more the rest pays, the lower is the function.
            low, high = (_at(points, end) for end in (most, least))
        return Band(points, np.maximum(low - half, 0.0), np.minimum(high + half, 1.0), half)

    def interval(self, what: str, p: float | None = None) -> Interval | None:
        """The interval of "mean", "variance", "quantile" or "cvar" (at p); None if the source is a model."""
        measure = _measure(what, p)
        if self.function.shares is None:
            return None
        tail = (1 - self.confidence) / 2
        drawn = [measure(function) for function in self._redrawn]
        low, high = np.quantile(drawn, [tail, 1 - tail])
        if self.function.ends is not None:
            here, ends = measure(self.function), [measure(end) for end in self.function.ends]
            low, high = low + min(0.0, min(ends) - here), high + max(0.0, max(ends) - here)
        return float(low), float(high)

    @cached_property
    def table(self) -> pd.DataFrame:
        """Mean, variance, standard deviation, quantiles and tail means, each with its interval."""
        import pandas as pd

        rows = [("mean", self.mean, self.interval("mean"))]
        variance = self.interval("variance")
        rows.append(("variance", self.variance, variance))
        deviation = None if variance is None else (max(variance[0], 0.0) ** 0.5, max(variance[1], 0.0) ** 0.5)
        rows.append(("standard deviation", self.variance**0.5, deviation))
        rows += [(f"quantile {p:g}", self.quantile(p), self.interval("quantile", p)) for p in QUANTILES]
        rows += [(f"mean of the worst {p:.0%}", self.cvar(p), self.interval("cvar", p)) for p in TAILS]
        nothing = (np.nan, np.nan)
        return pd.DataFrame(
            [(name, value, *(nothing if ends is None else ends)) for name, value, ends in rows],
            columns=["quantity", "value", "low", "high"],
        )

    def __str__(self) -> str:
        kind = "total until the end" if self.discount == 1 else f"discounted by {self.discount:g}"
        kind += "" if self.horizon is None else f", of {self.horizon} steps"
        lines = [f"return of an episode, {kind}"]
        if self.source == "model":
            lines.append("FROM A MODEL: simulated paths, no band; wrong where the model is")
        for name, value, low, high in self.table.itertuples(index=False):
            ends = "" if np.isnan(low) else f"  ({low:.5g} to {high:.5g})"
            lines.append(f"{name:<24}{value:.6g}{ends}")
        counted = f"{self.num_episodes:,} {'simulated paths' if self.source == 'model' else 'episodes'}"
        if self.source == "episodes":
            counted += f", effective {self.effective_episodes:,.0f}"
            lines.append(
                f"{'band':<24}± {self.band.half_width:.3g} around the distribution function" if self.band else ""
            )
        lines += because(self.verdict, self.reasons, 24)
        lines += [f"{'source':<24}{self.source}: {self.method}, {counted}"]
        return "\n".join([*lines, *(f"{'note':<24}{note}" for note in self.notes)])

    __repr__ = __str__  # in a terminal an answer shows itself as `print` shows it

    def plot(self) -> Figure:
        """The distribution function with its band: a matplotlib figure."""
        return shown(self, "plot")

    @cached_property
    def _moves(self) -> Float[np.ndarray, "b m"]:
        return self.function.moves(REPLICATIONS, self.seed)

    @cached_property
    def _redrawn(self) -> list[StepFunction]:
        return [StepFunction(self.function.points, cdf) for cdf in monotone(self.function.cdf + self._moves)]


def _at(points: np.ndarray, function: StepFunction) -> np.ndarray:
    """The function at some points."""
    return np.concatenate([[0.0], function.cdf])[np.searchsorted(function.points, points, side="right")]


def _level(p: float) -> float:
    return require_number("p", p, low=0, high=1, open_low=True)


def _measure(what: str, p: float | None) -> Callable[[StepFunction], float]:
    require_choice("what", what, "mean", "variance", "quantile", "cvar")
    if what in ("quantile", "cvar"):
        if p is None:
            raise InputError(f'interval("{what}", p) needs p, a probability.')
        level = _level(p)
        return lambda function: getattr(function, what)(level)
    if p is not None:
        raise InputError(f'interval("{what}") has no p: leave it out, or ask for "quantile" or "cvar".')
    return lambda function: getattr(function, what)
