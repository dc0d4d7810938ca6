"""Each family's verdicts and coverage, with this version and with the one before the assumptions were tested."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import pandas as pd

from gradientdice_studies.frames import column, records, rows_where
from gradientdice_studies.traps.families import families
from gradientdice_studies.traps.family import Family

# The bars: in a trap, trusted intervals that cover so often or hardly any trust; on honest logs, trust and coverage.
COVERS, HARDLY, TRUSTED, HONEST_COVERAGE = 0.90, 0.05, 0.80, (0.93, 0.97)


@dataclass(frozen=True)
class Summary:
    """What happened to the logs of a family.

    Attributes:
        logs: how many there were.
        trust: the share that was trusted.
        caution: the share with caution.
        rejected: the share that was not to be trusted, or refused.
        covered: the share of the trusted intervals that hold the truth; None if none was trusted.
        inside: the share of all intervals that do; None if there were none.
    """

    logs: int
    trust: float
    caution: float
    rejected: float
    covered: float | None
    inside: float | None

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Summary:
        """From one row per log."""
        verdict = column(frame, "verdict")
        trusted = rows_where(frame, verdict="trust")
        given = frame.dropna(subset=["inside"])
        return cls(
            logs=len(frame),
            trust=float((verdict == "trust").mean()),
            caution=float((verdict == "caution").mean()),
            rejected=float(verdict.isin(["do not trust", "refused"]).mean()),
            covered=_mean(trusted),
            inside=_mean(given),
        )

    def passes(self, family: Family) -> bool:
        """Whether it reaches the bar; coverage of honest logs may miss it by two of its own standard errors."""
        if family.trap != "honest":
            return self.trust < HARDLY or (self.covered or 0.0) >= COVERS
        if self.trust < TRUSTED or self.covered is None:
            return False
        low, high = HONEST_COVERAGE
        noise = 2 * (0.95 * 0.05 / (self.trust * self.logs)) ** 0.5
        return low - noise <= self.covered <= high + noise


def summaries(frame: pd.DataFrame) -> dict[str, Summary]:
    """Family -> what happened to its logs."""
    return {name: Summary.of(rows_where(frame, family=name)) for name in families()}


def before() -> dict[str, Summary]:
    """The same with the version before; `before.csv` is the summary of this experiment's run on that version."""
    text = files("gradientdice_studies.traps").joinpath("before.csv")
    with text.open(encoding="utf-8") as source:
        rows = records(pd.read_csv(source))
    return {row.pop("family"): Summary(**{key: _known(value) for key, value in row.items()}) for row in rows}


def _known(value: Any) -> Any:
    """None for what pandas read as a NaN."""
    return None if pd.isna(value) else value


def _mean(frame: pd.DataFrame) -> float | None:
    inside = column(frame, "inside").dropna()
    return float(inside.astype(float).mean()) if len(inside) else None
