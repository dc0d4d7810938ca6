"""The numbers of the results page."""

from __future__ import annotations

from typing import Any

import pandas as pd

from gradientdice_studies.frames import column, groups, records
from gradientdice_studies.markdown import number, table
from gradientdice_studies.neural.run import QUICK, Scale, run
from gradientdice_studies.steps import Steps

HEADER = (
    "problem",
    "γ",
    "transitions",
    "truth",
    "logged mean",
    "mean error",
    "spread of the answers",
    "median standard error",
    "truth inside",
)


def context(frame: pd.DataFrame, scale: Scale) -> dict[str, Any]:
    """The values of the template's names."""
    return {"answers": table(HEADER, [_row(problem, rows) for (problem,), rows in groups(frame, "problem")])}


def _row(problem: str, rows: pd.DataFrame) -> list[str]:
    first, known = records(rows)[0], column(rows, "truth")
    errors = column(rows, "value") - known
    inside = (column(rows, "low") <= known) & (known <= column(rows, "high"))
    return [
        problem,
        f"{first['discount']:g}",
        f"{first['rows']:,}",
        f"{first['truth']:.4g} ± {number(first['truth_error'], 1)}",
        f"{column(rows, 'logged_mean').mean():.4g}",
        number(errors.mean()),
        number(float(errors.to_numpy(dtype=float).std(ddof=1))),
        number(column(rows, "standard_error").median()),
        f"{inside.sum()} of {len(rows)}",
    ]


STEPS = Steps(full=Scale(), quick=QUICK, run=run, context=context)
