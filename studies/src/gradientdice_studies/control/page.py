"""The numbers of the results page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from gradientdice.statistics.checks import Verdict
from gradientdice_studies.control.d3rlpy_table import NAMES, all_methods
from gradientdice_studies.control.figures import draw_all
from gradientdice_studies.control.run import QUICK, REFUSED, Scale, run
from gradientdice_studies.control.summary import Judged, judged, pooled, summarised
from gradientdice_studies.control.tasks import TASKS
from gradientdice_studies.control.truth import truths
from gradientdice_studies.frames import column, groups, records, rows_where
from gradientdice_studies.markdown import number, table
from gradientdice_studies.steps import Steps

HALVES = {"report": "kept for the report", "develop": "developed on"}
POOLED = (
    "rows",
    "discount",
    "method",
    "RMSE / gap",
    "coverage",
    "half-width / gap",
    "half-width / running",
    "right",
    "wrong",
    "seconds",
    "MiB",
)
SINGLE = ("task", *POOLED[:3], "logs", *POOLED[3:])


def context(frame: pd.DataFrame, scale: Scale) -> dict[str, Any]:
    """The values of the template's names."""
    frame = all_methods(frame)
    cells = summarised(frame)
    names = [name for name in TASKS if name in set(column(cells, "task"))]
    values: dict[str, Any] = {
        "logs": _logs(cells),
        "num_tasks": len(names),
        "tasks": _tasks(names),
        "networks": _networks(cells),
    }
    for half in HALVES:
        own = rows_where(cells, half=half)
        values[f"{half}_bars"] = _bars(judged(cells, half))
        values[f"{half}_pooled"] = _pooled(own)
        values[f"{half}_verdicts"] = _verdicts(rows_where(frame, half=half, method="default"))
        values[f"{half}_cells"] = _cells(own)
    return values


def _logs(cells: pd.DataFrame) -> str:
    """How many logs of the default there are, of each size; of each half too where they differ."""
    said = []
    for (size,), both in groups(rows_where(cells, method="default"), "rows"):
        by_half = {half: _counted(own) for (half,), own in groups(both, "half")}
        if len(set(by_half.values())) == 1:
            said.append(f"{_counted(both)} of {size:,} rows of each")
        else:
            said += [f"{count} of {size:,} rows of each task {HALVES[half]}" for half, count in by_half.items()]
    return ", ".join(said)


def _networks(cells: pd.DataFrame) -> str:
    """What is to be said of the methods that train networks beside the default."""
    trained, longer = NAMES.values()
    names = {
        "FQE": '"FQE" is ours, with networks',
        "model alone": '"Model alone" is the learned model without a correction',
        trained: f'"{trained}" is theirs with its own defaults (`benchmarks/d3rlpy_fqe.py` wrote its table)',
        longer: f'"{longer}" is the same, trained as long as an example of its documentation does',
    }
    said = []
    for method, words in names.items():
        own = rows_where(cells, method=method)
        if len(own) == 0:
            said.append(f'"{method}" was not run.')
            continue
        *smaller, largest = (f"{_counted(some)} of {size:,} rows" for (size,), some in groups(own, "rows"))
        sizes = f"{', '.join(smaller)} and {largest}" if smaller else largest
        said.append(f"{words}; it has no interval, and was run on {sizes} of each task shown.")
    return " ".join(said)


def _counted(cells: pd.DataFrame) -> str:
    """How many logs the cells have."""
    counts = sorted({int(count) for count in column(cells, "logs")})
    if counts == [1]:
        return "1 log"
    return f"{counts[0]} logs" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} logs"


def _verdicts(logs: pd.DataFrame) -> str:
    """What the default's own verdicts are worth: how often each is given, and how often the truth is inside then."""
    rows = []
    order = [*map(str, Verdict), REFUSED]
    found = sorted(groups(logs, "rows", "verdict"), key=lambda group: (group[0][0], order.index(group[0][1])))
    for (size, verdict), some in found:
        truth, value, low, high, behavior = (
            column(some, name).to_numpy(dtype=float) for name in ("truth", "value", "low", "high", "true_behavior")
        )
        inside, errors = (low <= truth) & (truth <= high), np.abs((value - truth) / (truth - behavior))
        rows.append([f"{size:,}", verdict, len(some), _share(float(inside.mean())), number(float(np.median(errors)))])
    header = ("rows", "verdict", "answers", "coverage", "median error / gap")
    return table(header, rows) if rows else "No task of this half was run."


def _tasks(names: Iterable[str]) -> str:
    rows = []
    for name in names:
        task = TASKS[name]()
        for discount, truth in truths()[name].items():
            rows.append(
                [
                    name,
                    task.environment,
                    task.dimension,
                    task.limit,
                    HALVES[task.half],
                    f"{discount:g}",
                    f"{truth.value:.4g} ± {number(truth.value_error, 1)}",
                    f"{truth.behavior:.4g} ± {number(truth.behavior_error, 1)}",
                    f"{truth.gap_in_errors:.0f}",
                ]
            )
    header = ("task", "environment", "dimension", "log's limit", "half", "γ", "target", "behaviour", "gap / error")
    return table(header, rows)


def _bars(found: Iterable[Judged]) -> str:
    rows = [
        [
            f"{bar.rows:,}",
            bar.sentence,
            "–" if bar.measured is None else f"{bar.measured:.3g}",
            "not run" if bar.holds is None else "yes" if bar.holds else "**no**",
        ]
        for bar in found
    ]
    return table(("rows", "bar", "measured", "holds"), rows)


def _pooled(cells: pd.DataFrame) -> str:
    rows = []
    for (size, discount, method), some in groups(cells, "rows", "discount", "method"):
        rows.append([f"{size:,}", f"{discount:g}", method, *_figures(pooled(some))])
    return table(POOLED, rows) if rows else "No task of this half was run."


def _cells(cells: pd.DataFrame) -> str:
    rows = []
    for row in records(cells.sort_values("task", kind="stable")):
        single = {**row, **pooled(rows_where(cells, **{name: row[name] for name in ("task", *POOLED[:3])}))}
        names = [row["task"], f"{row['rows']:,}", f"{row['discount']:g}", row["method"], row["logs"]]
        rows.append([*names, *_figures(single)])
    return table(SINGLE, rows) if rows else "No task of this half was run."


def _figures(figures: dict[str, Any]) -> list[str]:
    return [
        number(figures["rmse"]),
        _share(figures["coverage"]),
        number(figures["width"]),
        number(figures["width_running"]),
        _share(figures["right"]),
        _share(figures["wrong"]),
        number(figures["seconds"]),
        number(figures["mebibytes"], 3),
    ]


def _share(share: float) -> str:
    return "–" if share != share else f"{share:.2f}"


STEPS = Steps(full=Scale(), quick=QUICK, run=run, context=context, draw=draw_all)
