"""The numbers of the results page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from gradientdice_studies.frames import column, groups, kept, records, rows_where
from gradientdice_studies.markdown import number, table
from gradientdice_studies.shootout.analysis import CELL, errors, picks, prepared, problem_name
from gradientdice_studies.shootout.figures import draw_all
from gradientdice_studies.shootout.guide import HIDDEN, closed_form, guide
from gradientdice_studies.shootout.run import CROSS_FITTED, LEARNED, OWN, QUICK, Scale, run
from gradientdice_studies.steps import Steps

VERDICTS = ("trust", "caution", "do not trust")


def context(frame: pd.DataFrame, scale: Scale) -> dict[str, Any]:
    """The values of the template's names."""
    frame = prepared(frame)
    found, chosen = errors(frame), picks(frame)
    logs = {problem: column(rows, "seed").nunique() for (problem,), rows in groups(frame, "problem")}
    markov = kept(frame, frame["problem"] != HIDDEN)
    return {
        "benchmarks": len(logs),
        "estimators": column(frame, "estimator").nunique(),
        "overlaps": ", ".join(f"{overlap:g}" for overlap in scale.overlaps),
        "seeds": scale.seeds,
        "rmse_error": f"{1 / np.sqrt(2 * scale.seeds):.0%}",
        "fewer": ", ".join(f"{n} for {problem_name(problem)}" for problem, n in logs.items() if n < scale.seeds),
        "logs": f"{len(frame[[*CELL, 'seed']].drop_duplicates()):,}",
        "learned": LEARNED,
        "guide": guide(found),
        "closed_form": closed_form(frame, found),
        "choice_factor": f"{column(chosen, 'factor').median():.2f}",
        "choices": _choices(frame, chosen),
        "coverage_by_verdict": _coverage_by_verdict(markov),
        "coverage": _coverage(markov, found),
        "errors": _errors(found),
    }


def _choices(frame: pd.DataFrame, chosen: pd.DataFrame) -> str:
    rows = []
    marked = kept(frame, frame["chosen"])
    for (problem, discount), group in groups(chosen, "problem", "discount"):
        names = column(rows_where(marked, problem=problem, discount=discount), "estimator").value_counts()
        factors = column(group, "factor")
        shown = [number(factors.median(), 3), number(factors.max(), 3)]
        picked = ", ".join(f"{name} {count}" for name, count in names.items())
        rows.append([problem_name(problem), f"{discount:g}", *shown, picked])
    return table(["benchmark", "γ", "median factor", "largest", "picked (logs)"], rows)


def _coverage_by_verdict(markov: pd.DataFrame) -> str:
    own = rows_where(markov, estimator=OWN)
    own = kept(own, column(own, "low").notna())
    parts = [(verdict, column(rows_where(own, verdict=verdict), "inside")) for verdict in VERDICTS]
    return ", ".join(
        f'{inside.mean():.0%} of {len(inside):,} where it says "{verdict}"' for verdict, inside in parts if len(inside)
    )


def _coverage(markov: pd.DataFrame, found: pd.DataFrame) -> str:
    seconds = {name: column(rows, "seconds").median() for (name,), rows in groups(found, "estimator")}
    rows = []
    for name in sorted(seconds, key=lambda name: (np.isnan(seconds[name]), seconds[name], name)):
        own = rows_where(markov, estimator=name)
        own = kept(own, column(own, "value").notna())
        if own.empty:
            continue
        inside = column(kept(own, column(own, "low").notna()), "inside")
        spent = column(own, "seconds")
        # The cross-fitted answer has no time of its own: `compare` makes it from the others.
        times = ["–", "–"] if name == CROSS_FITTED else [number(spent.median()), number(spent.max())]
        rows.append([name, f"{inside.mean():.0%}" if len(inside) else "no interval", *times])
    return table(["estimator", "95% interval covers", "median seconds", "longest"], rows)


def _errors(found: pd.DataFrame) -> list[dict[str, str]]:
    """For each benchmark and discount a title and the table of all errors without overlap, by size."""
    sections = []
    plain = kept(found, found["overlap"] == column(found, "overlap").min())
    for (problem, discount), group in groups(plain, "problem", "discount"):
        sizes = sorted(column(group, "rows").unique())
        rows = []
        for (name,), own in groups(group, "estimator"):
            by_size = {row["rows"]: row for row in records(own)}
            if column(own, "answered").sum() > 0:
                rows.append([name, *(_cell(by_size[size]) for size in sizes)])
        rows.sort(key=lambda row: _order(row[-1]))
        header = ["estimator", *(f"{size:,}" for size in sizes)]
        sections.append({"title": f"{problem_name(problem)}, γ = {discount:g}", "table": table(header, rows)})
    return sections


def _cell(row: dict[str, Any]) -> str:
    if row["answered"] == 0:
        return "–"
    more = "" if row["answered"] == row["logs"] else f" ({row['answered']} of {row['logs']})"
    return number(row["rmse"]) + more


def _order(cell: str) -> tuple[bool, bool, float]:
    """Smallest error first; after these the estimators that did not answer every log, and those that answered none."""
    if cell == "–":
        return True, False, np.inf
    return False, "(" in cell, float(cell.split()[0].replace("∞", "inf"))


STEPS = Steps(full=Scale(), quick=QUICK, run=run, draw=draw_all, context=context)
