"""The numbers of the results page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from gradientdice.statistics.checks import Verdict
from gradientdice_studies.frames import column, groups, rows_where
from gradientdice_studies.markdown import number, table
from gradientdice_studies.ranking.case import BEHAVIOR, best_of
from gradientdice_studies.ranking.cases import CASES
from gradientdice_studies.ranking.d3rlpy_table import with_d3rlpy
from gradientdice_studies.ranking.figures import draw_all
from gradientdice_studies.ranking.run import QUICK, Scale, run
from gradientdice_studies.ranking.summary import METHODS, SELECT, Coverage, Picks, calibration, judged, of_half
from gradientdice_studies.steps import Steps

KINDS = {"table": "tables", "control": "control tasks"}
# What is asked for: coverage of 95% intervals, and deployments at the level of 5%.
DIFFERENCES, SIMULTANEOUS, FALSE = (0.93, 0.97), 0.93, 0.05
COVERAGE = (
    "case",
    "logs",
    "differences",
    "all at once",
    "best set",
    "paired / unpaired",
    "paired / two intervals",
    "truth's error",
    "CPU s",
)
PICKS = (
    "case",
    "method",
    "logs",
    "rank correlation",
    "regret",
    "regret of 3",
    "false",
    "missed",
    "only no better: deployed",
)


def context(frame: pd.DataFrame, scale: Scale) -> dict[str, Any]:
    """The values of the template's names."""
    rows = judged(with_d3rlpy(frame))
    values: dict[str, Any] = {
        "logs": _logs(rows),
        "cases": _cases(rows),
        "fitted": _fitted(rows),
        "unknown": _unknown(rows),
        "withheld": _withheld(rows),
    }
    for half in ("develop", "report"):
        own = of_half(rows, half)
        values[f"{half}_bars"] = _bars(own)
        values[f"{half}_coverage"] = _coverage(own)
        values[f"{half}_picks"] = _picks(own)
        values[f"{half}_calibration"] = _calibration(own)
    return values


def _parts(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The cases one by one, then those of each kind together."""
    yield from ((name, own) for (name,), own in groups(rows, "case"))
    for kind, label in KINDS.items():
        own = rows_where(rows, kind=kind)
        if column(own, "case").nunique() > 1:
            yield f"all {label}", own


def _logs(rows: pd.DataFrame) -> str:
    """How many logs each kind of case has."""
    said = []
    for kind, label in KINDS.items():
        counts = sorted({Coverage.of(own).logs for _, own in groups(rows_where(rows, kind=kind), "case")})
        if counts:
            many = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
            said.append(f"{many} logs of each of {column(rows_where(rows, kind=kind), 'case').nunique()} {label}")
    return " and ".join(said)


def _fitted(rows: pd.DataFrame) -> str:
    """On how many logs d3rlpy was run."""
    counts = {name: Picks.of(own, "FQE of d3rlpy") for (name,), own in groups(rows, "case")}
    known = {name: picks.logs for name, picks in counts.items() if picks is not None}
    if not known:
        return "d3rlpy's FQE was not run; `benchmarks/d3rlpy_ranking.py` writes the table that this page would read."
    each = "; ".join(f"{name} {count}" for name, count in known.items())
    return f"d3rlpy's FQE takes minutes per candidate and was run on the first logs only: {each}."


def _withheld(rows: pd.DataFrame) -> str:
    """How often `select` does not deploy the first candidate because its estimate is not to be trusted."""
    said = []
    for kind, label in KINDS.items():
        own = rows_where(rows, kind=kind)
        if not len(own):
            continue
        first = pd.concat([log.nlargest(1, "value") for _, log in groups(own, "case", "seed")])
        withheld = rows_where(first, shown_better=True, verdict=str(Verdict.DO_NOT_TRUST))
        said.append(f"{len(withheld)} of {len(first)} logs of {label}")
    return " and on ".join(said)


def _unknown(rows: pd.DataFrame) -> str:
    """The cases whose best candidate is not known."""
    said = []
    for (name,), _ in groups(rows_where(rows, best_known=False), "case"):
        case = CASES[name]()
        worth = case.worth()
        said.append(f"{name} ({' and '.join(best_of({policy: worth[policy] for policy in case.candidates}))})")
    if not said:
        return "The best candidate of every case is known."
    return (
        "Left out, because Monte Carlo cannot tell the two best candidates or more apart by two standard errors: "
        + ", ".join(said)
        + "."
    )


def _bars(rows: pd.DataFrame) -> str:
    """What is asked for beside what was measured, by kind of case."""
    found = []
    for kind, label in KINDS.items():
        own = rows_where(rows, kind=kind)
        if not len(own):
            continue
        coverage, picks = Coverage.of(own), Picks.of(own, SELECT)
        assert picks is not None
        low, high = DIFFERENCES
        bars = (
            (f"paired differences covered, {low:.2f} to {high:.2f}", coverage.differences, low, high),
            (f"all simultaneous intervals hold, at least {SIMULTANEOUS:.2f}", coverage.simultaneous, SIMULTANEOUS, 1),
            (f"false deployments by `select`, at most {FALSE:.2f}", picks.false, 0, FALSE),
            (f"the same with only candidates that are no better, at most {FALSE:.2f}", picks.mistaken, 0, FALSE),
        )
        for sentence, measured, least, most in bars:
            # Shares of logs are compared as they are printed.
            holds = least <= round(measured, 3) <= most
            found.append([label, sentence, f"{measured:.3f}", "yes" if holds else "**no**"])
    return table(("cases", "bar", "measured", "holds"), found) if found else "No case of this half was run."


def _coverage(rows: pd.DataFrame) -> str:
    found = []
    for name, own in _parts(rows):
        seen = Coverage.of(own)
        found.append(
            [
                name,
                seen.logs,
                f"{seen.differences:.3f}",
                f"{seen.simultaneous:.2f}",
                f"{seen.best_set:.2f}",
                f"{seen.width:.2f}",
                f"{seen.two_intervals:.2f}",
                f"{seen.truth_error:.2f}",
                number(seen.cpu_seconds),
            ]
        )
    return table(COVERAGE, found) if found else "No case of this half was run."


def _picks(rows: pd.DataFrame) -> str:
    found = []
    for name, own in _parts(rows):
        for method in METHODS:
            picks = Picks.of(own, method)
            if picks is None:
                continue
            shares = (picks.correlation, picks.regret, picks.regret_of_three, picks.false, picks.missed, picks.mistaken)
            found.append([name, method, picks.logs, *(f"{share:.2f}" for share in shares)])
    return table(PICKS, found) if found else "No case of this half was run."


def _calibration(rows: pd.DataFrame) -> str:
    found = []
    for kind, label in KINDS.items():
        own = rows_where(rows, kind=kind)
        for seen in calibration(own):
            low, high = seen.interval
            share = f"{seen.best / seen.count:.3f} ({low:.2f} to {high:.2f})"
            found.append([label, seen.count, seen.best, f"{seen.said:.3f}", share])
    header = ("cases", "candidates", "the best", "said, mean", "seen")
    return table(header, found) if found else "No case of this half was run."


def _cases(rows: pd.DataFrame) -> str:
    """What is ranked, with what it is worth."""
    found = []
    for (name,), own in groups(rows, "case"):
        case, worth = CASES[name](), CASES[name]().worth()
        found.append(
            [
                name,
                case.half,
                f"{case.discount:g}",
                _range(column(own, "rows")),
                _range(column(own, "episodes")),
                f"{worth[BEHAVIOR].value:.4g}",
                ", ".join(f"{policy} {worth[policy].value:.4g}" for policy in case.candidates),
            ]
        )
    return table(("case", "half", "γ", "rows", "episodes", "behaviour", "candidates"), found)


def _range(counts: Iterable[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


STEPS = Steps(full=Scale(), quick=QUICK, run=run, context=context, draw=draw_all)
