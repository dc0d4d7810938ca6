"""What the logs of a cell (a task, a size, a discount, a method) show, and whether the bars are reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gradientdice_studies.control.methods import CONFIDENCE
from gradientdice_studies.frames import column, groups, records, rows_where

CELL = ("half", "task", "rows", "discount", "method")
# 95% of a normal error lie within so many standard errors.
NORMAL = 1.96


def summarised(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per cell: errors and widths in units of the gap, coverage, decisions, costs."""
    rows = [{**dict(zip(CELL, names, strict=True)), **_cell(logs)} for names, logs in groups(frame, *CELL)]
    return pd.DataFrame(rows)


def _cell(logs: pd.DataFrame) -> dict[str, float]:
    truth, behavior, low, high, value, running = (
        column(logs, name).to_numpy(dtype=float)
        for name in ("truth", "true_behavior", "low", "high", "value", "running_error")
    )
    gap, half_width, has_interval = np.abs(truth - behavior), (high - low) / 2, np.isfinite(low)
    better = np.where(truth > behavior, "better", "worse")
    decision = column(logs, "decision").to_numpy()
    right, decided = decision == better, decision != "undecided"
    known = np.isfinite(value)
    return {
        "logs": len(logs),
        "intervals": int(has_interval.sum()),
        "rmse": float(np.sqrt(np.mean(((value - truth) / gap)[known] ** 2))) if known.any() else float("nan"),
        "inside": int(((low <= truth) & (truth <= high)).sum()),
        "width": _median(half_width / gap),
        "width_running": _median(half_width / (NORMAL * running)),
        "right": int(right.sum()),
        "wrong": int((decided & ~right).sum()),
        "seconds": _median(column(logs, "seconds").to_numpy(dtype=float)),
        "mebibytes": float(column(logs, "mebibytes").max()),
    }


def _median(values: np.ndarray) -> float:
    """Of those that are known."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else float("nan")


def pooled(cells: pd.DataFrame) -> dict[str, float]:
    """Cells taken together: medians over cells, shares over logs."""
    total = {name: float(column(cells, name).sum()) for name in ("logs", "intervals", "inside", "right", "wrong")}
    medians = ("rmse", "width", "width_running", "seconds")
    return {
        **{name: _median(column(cells, name).to_numpy(dtype=float)) for name in medians},
        "coverage": total["inside"] / total["intervals"] if total["intervals"] else float("nan"),
        # A method without intervals decides nothing.
        "right": total["right"] / total["logs"] if total["intervals"] else float("nan"),
        "wrong": total["wrong"] / total["logs"] if total["intervals"] else float("nan"),
        "mebibytes": float(column(cells, "mebibytes").max()),
    }


@dataclass(frozen=True)
class Bar:
    """Something that the default is to reach on the half of the tasks that was kept for the report.

    Attributes:
        rows: at logs of this size.
        sentence: what it is to reach.
        figure: of the pooled cells.
        reached: whether that figure is good enough.
    """

    rows: int
    sentence: str
    figure: str
    reached: Callable[[float], bool]


BARS = (
    Bar(10_000, f"coverage of {CONFIDENCE:.0%} intervals between 92% and 98%", "coverage", lambda x: 0.92 <= x <= 0.98),
    Bar(
        10_000, "median half-width at most 3 times that of running the policy itself", "width_running", lambda x: x <= 3
    ),
    Bar(10_000, "median RMSE at most 0.2 of the gap", "rmse", lambda x: x <= 0.2),
    Bar(10_000, "right decisions in at least 60% of the logs", "right", lambda x: x >= 0.6),
    Bar(10_000, "wrong decisions in at most 2.5% of the logs", "wrong", lambda x: x <= 0.025),
    Bar(100_000, "median RMSE at most 0.08 of the gap", "rmse", lambda x: x <= 0.08),
    Bar(100_000, "right decisions in at least 85% of the logs", "right", lambda x: x >= 0.85),
)
# A cell's RMSE may be above the previous default's by this factor.
NOT_WORSE = 1.1


@dataclass(frozen=True)
class Judged:
    """A bar with what was measured: None where it was not run."""

    rows: int
    sentence: str
    measured: float | None
    holds: bool | None


def judged(cells: pd.DataFrame, half: str) -> list[Judged]:
    """All bars, for one half of the tasks."""
    own = rows_where(cells, half=half, method="default")
    found = []
    for bar in BARS:
        here = rows_where(own, rows=bar.rows)
        if len(here) == 0:
            found.append(Judged(bar.rows, bar.sentence, None, None))
            continue
        value = pooled(here)[bar.figure]
        found.append(Judged(bar.rows, bar.sentence, value, bar.reached(value)))
    return [*found, _not_worse(cells, half, 10_000)]


def _not_worse(cells: pd.DataFrame, half: str, rows: int) -> Judged:
    """The largest ratio of the default's RMSE to the previous default's over the cells of one size."""
    sentence = f"RMSE nowhere above {NOT_WORSE:g} times the previous default's"
    here = rows_where(cells, half=half, rows=rows)
    by_cell = {
        (row["task"], row["discount"], row["method"]): row["rmse"] for row in records(here) if np.isfinite(row["rmse"])
    }
    ratios = [
        error / by_cell[task, discount, "previous default"]
        for (task, discount, method), error in by_cell.items()
        if method == "default" and (task, discount, "previous default") in by_cell
    ]
    if not ratios:
        return Judged(rows, sentence, None, None)
    return Judged(rows, sentence, max(ratios), max(ratios) <= NOT_WORSE)
