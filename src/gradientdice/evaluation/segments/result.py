"""Values by segment, which add up to the whole."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from gradientdice.evaluation.estimate import Estimate
from gradientdice.evaluation.shown import shown
from gradientdice.statistics.checks import Verdict, because

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# A rest below this share of the values' size is rounding.
ROUNDING = 1e-8


@dataclass(frozen=True)
class Segment:
    """One group.

    Attributes:
        group: its label.
        count: how many initial states, or rows, it has.
        share: of the initial states; or of the target's time.
        value: of the target that starts there; or what a step there earns on average.
        low: the lower end of the value's interval.
        high: the upper end.
        contribution: share × value, the group's part of the whole.
        contribution_low: the lower end of its interval.
        contribution_high: the upper end.
        units: how many independent units (initial states, episodes or rows) it has; copies of one are one.
        verdict: that of the whole, and caution at best if there are few units.
    """

    group: object
    count: int
    share: float
    value: float
    low: float
    high: float
    contribution: float
    contribution_low: float
    contribution_high: float
    units: int
    verdict: Verdict


@dataclass(frozen=True, eq=False)
class Segments:
    """A policy's value by segment.

    Attributes:
        of: "starts", the value of the target when it starts in the group; or "rows", what it earns in the group's rows.
        groups: one for each label, in their order.
        whole: the estimate of the whole.
        rest: the part of the whole that no group has; 0 but for rounding where estimates are linear in the rewards.
        notes: what the reader should know.
    """

    of: str
    groups: tuple[Segment, ...]
    whole: Estimate
    rest: float
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """The sum of the contributions and the rest: the whole's value (before it is cut to what rewards allow)."""
        return sum(group.contribution for group in self.groups) + self.rest

    @property
    def verdict(self) -> Verdict:
        """The verdict of the estimate of the whole, which all groups rest on."""
        return self.whole.verdict

    @property
    def reasons(self) -> list[str]:
        """Why the verdict is not better."""
        return self.whole.reasons

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per group."""
        import pandas as pd

        rows = [{**asdict(group), "verdict": str(group.verdict)} for group in self.groups]
        return pd.DataFrame(rows).drop(columns="units")

    @property
    def has_rest(self) -> bool:
        """Whether the rest is more than rounding."""
        return abs(self.rest) > ROUNDING * max([abs(self.total), *(abs(group.contribution) for group in self.groups)])

    def __str__(self) -> str:
        title = (
            "value of the target when it starts in each group"
            if self.of == "starts"
            else "what the target earns in each group of rows: share of time × reward per step"
        )
        lines = [title, self.table.to_string(index=False, float_format=lambda number: f"{number:.4g}")]
        if self.has_rest:
            lines.append(f"rest {self.rest:.4g}")
        lines.append(f"whole {self.total:.6g}")
        lines += because(self.verdict, self.reasons, 11)
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    __repr__ = __str__  # in a terminal an answer shows itself as `print` shows it

    def plot(self) -> Figure:
        """Each group's value and contribution with intervals: a matplotlib figure."""
        return shown(self, "plot")
