"""The numbers of the results page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from gradientdice_studies.continuous.run import QUICK, Scale, run
from gradientdice_studies.frames import column, groups, kept, records
from gradientdice_studies.markdown import number, table
from gradientdice_studies.steps import Steps

# The width of the interval was settled on the first logs: these and later ones are also counted alone.
LATER = 25
# Ways to choose among the candidates of one log: what the chosen one has least of.
Candidate = dict[str, Any]
CRITERIA: dict[str, Callable[[Candidate], float]] = {
    "the default: standard error and estimated bias together": lambda row: not row["chosen"],
    "smallest Bellman loss": lambda row: row["loss"],
    "smallest flow residual": lambda row: row["flow_residual"],
    "smallest flow residual in size": lambda row: abs(row["flow_residual"]),
    "smallest standard error": lambda row: row["standard_error"],
}
HEADER = (
    "problem",
    "γ",
    "truth",
    "behaviour's value",
    "median error",
    "of the gap between the two",
    "median standard error",
    "truth inside",
    "median width",
)


def context(candidates: pd.DataFrame, scale: Scale) -> dict[str, Any]:
    """The values of the template's names, from one row per log, discount and candidate."""
    frame = candidates.assign(error=(candidates["value"] - candidates["truth"]).abs())
    frame["inside"] = (frame["low"] <= frame["truth"]) & (frame["truth"] <= frame["high"])
    chosen = kept(frame, frame["chosen"])
    later = kept(chosen, chosen["replication"] >= LATER)
    return {
        "replications": column(frame, "replication").nunique(),
        "rows": f"{scale.rows:,}",
        "truth_episodes": f"{scale.truth_episodes:,}",
        "answers": _answers(chosen),
        "inside": f"{column(chosen, 'inside').mean():.0%}",
        "later": LATER,
        "inside_later": f"{column(later, 'inside').mean():.0%} of {len(later)}" if len(later) else "not yet known",
        "criteria": _criteria(frame),
    }


def _answers(chosen: pd.DataFrame) -> str:
    rows = []
    for (problem, discount), group in groups(chosen, "problem", "discount"):
        first, error = records(group)[0], column(group, "error").median()
        rows.append(
            [
                problem,
                f"{discount:g}",
                f"{first['truth']:.4g} ± {number(first['truth_error'], 1)}",
                f"{first['behavior']:.4g}",
                number(error),
                f"{error / abs(first['truth'] - first['behavior']):.0%}",
                number(column(group, "standard_error").median()),
                f"{column(group, 'inside').sum()} of {len(group)}",
                number((column(group, "high") - column(group, "low")).median()),
            ]
        )
    return table(HEADER, rows)


def _criteria(frame: pd.DataFrame) -> str:
    logs = [records(rows) for _, rows in groups(frame, "problem", "discount", "replication")]
    rows = []
    for name, criterion in CRITERIA.items():
        factors = np.array([min(log, key=criterion)["error"] / min(row["error"] for row in log) for log in logs])
        shares = (f"{np.median(factors):.2f}", f"{np.quantile(factors, 0.9):.1f}", f"{np.mean(factors > 10):.0%}")
        rows.append([name, *shares])
    return table(["criterion", "median factor", "90% quantile", "more than 10 times"], rows)


STEPS = Steps(full=Scale(), quick=QUICK, run=run, context=context)
