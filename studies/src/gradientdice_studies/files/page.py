"""The page of the study of exports, from the table alone, and the study as the registry runs it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

import pandas as pd

from gradientdice_studies.files.run import (
    CHANCE,
    CRASH,
    DEFECTS,
    LONGEST_MESSAGE,
    NOT_APPLICABLE,
    OUTCOMES,
    WORSE,
    WRONG,
    Scale,
    run,
)
from gradientdice_studies.files.ways import MISS, NOT_TRUSTED, REFUSED, RIGHT, WAYS
from gradientdice_studies.frames import column, groups, kept, records, rows_where
from gradientdice_studies.markdown import number, table
from gradientdice_studies.steps import Steps

LIBRARIES = ("gradientdice", "numpy", "pandas", "pyarrow")


def context(frame: pd.DataFrame, scale: Scale) -> dict[str, Any]:
    """The values of the template's names, from the table alone."""
    tried = kept(frame, column(frame, "outcome") != NOT_APPLICABLE)
    counted = kept(tried, column(tried, "knowable").astype(bool))
    counts = Counter(column(counted, "outcome"))
    answers = kept(counted, (column(counted, "call") == "evaluate") & column(counted, "outcome").isin([RIGHT, MISS]))
    refusals = rows_where(tried, outcome=REFUSED)
    trusted = rows_where(rows_where(counted, call="evaluate"), verdict="trust")
    return {
        "domains": len(frame["domain"].unique()),
        "ways": len(frame["way"].unique()),
        "exports": len(frame.drop_duplicates(["domain", "way"])),
        "calls": len(tried),
        "counted": len(counted),
        "skipped": len(frame) - len(tried),
        "unknowable": ", ".join(way.name for way in WAYS if not way.knowable),
        "unknowable_calls": len(tried) - len(counted),
        "unknowable_wrong": len(rows_where(tried, outcome=WRONG)) - counts[WRONG],
        "chance": f"{CHANCE:g}",
        "longest": LONGEST_MESSAGE,
        "right": counts[RIGHT],
        "refused": counts[REFUSED],
        "not_trusted": counts[NOT_TRUSTED],
        "misses": counts[MISS],
        "answers": len(answers),
        "trusted": len(trusted),
        "defects": {name: counts[name] for name in DEFECTS},
        "wrong_list": _listed(rows_where(counted, outcome=WRONG)),
        "worse_list": _listed(rows_where(counted, outcome=WORSE)),
        "crash_list": _listed(rows_where(counted, outcome=CRASH)),
        "miss_list": _listed(rows_where(counted, outcome=MISS)),
        "unexpected_list": _listed(_unexpected(counted)),
        "unexpected": len(_unexpected(counted)),
        "tried_table": table(("way", "about", "how the log is written"), _tried_rows(frame)),
        "counts_table": _counts(frame),
        "refusals": _refusals(refusals),
        "poor_messages": int((~column(refusals, "message_names_its_subject").astype(bool)).sum()),
        "versions": ", ".join(f"{name} {version(name)}" for name in LIBRARIES),
    }


def _unexpected(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that an expert would not accept, apart from those that the page lists as defects."""
    return kept(frame, ~column(frame, "expected").astype(bool) & ~column(frame, "outcome").isin(DEFECTS))


def _tried_rows(frame: pd.DataFrame) -> list[list[str]]:
    there = set(frame["way"])
    return [[way.name, way.group, way.tried] for way in WAYS if way.name in there]


def _counts(frame: pd.DataFrame) -> str:
    """Each way and how often it had each outcome, with both calls and all formats."""
    rows = []
    for (way, known), some in groups(frame, "way", "knowable"):
        counts = Counter(column(some, "outcome"))
        name = f"{way}" if known else f"{way} (order not tested)"
        rows.append([name, *(counts[outcome] or "" for outcome in OUTCOMES)])
    order = {way.name: place for place, way in enumerate(WAYS)}
    rows.sort(key=lambda row: order[str(row[0]).removesuffix(" (order not tested)")])
    return table(("way", *OUTCOMES), rows)


def _listed(frame: pd.DataFrame) -> str:
    """The cases; those of a domain and call with one and the same answer or message are one."""
    header = (
        "domain",
        "call",
        "outcome",
        "value and interval",
        "truth",
        "verdict or choice",
        "reason",
        "ways and formats",
    )
    found: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for row in records(frame):
        same = (
            *(str(row[name]) for name in ("domain", "call", "outcome")),
            _interval(row),
            _figure(row["truth"]),
            _text(row["verdict"]) or _text(row["choice"]),
            _cell(_text(row["reason"])),
        )
        found.setdefault(same, {}).setdefault(str(row["way"]), []).append(str(row["format"]))
    rows = [
        [*same, "; ".join(f"{way} ({', '.join(formats)})" for way, formats in ways.items())]
        for same, ways in found.items()
    ]
    return table(header, rows) if rows else "No case."


def _refusals(frame: pd.DataFrame) -> str:
    """Each message once; messages that differ in their figures and quoted names only are one."""
    seen: dict[tuple[str, str], list[str]] = {}
    for row in records(frame):
        message = str(row["reason"])
        pattern = re.sub(r"'[^']*'|\d[\d.,:T+-]*|log(\.csv|\.parquet)?(/part-\S*)?|the DataFrame", "…", message)
        seen.setdefault((str(row["way"]), pattern), [str(row["way"]), str(row["domain"]), _cell(message)])
    once: dict[str, list[str]] = {}
    for (_, pattern), cells in seen.items():
        if pattern in once:
            once[pattern][0] += f", {cells[0]}"
        else:
            once[pattern] = list(cells)
    return table(("ways", "first seen in", "message"), once.values()) if once else "No case."


def _cell(text: str) -> str:
    return "`" + " ".join(text.split()).replace("`", "'").replace("|", "\\|") + "`" if text else ""


def _text(value: Any) -> str:
    return "" if value is None or pd.isna(value) else str(value)


def _figure(value: Any) -> str:
    return "–" if value is None or pd.isna(value) else number(float(value), 3)


def _interval(row: dict[str, Any]) -> str:
    figures: Iterable[str] = (_figure(row[name]) for name in ("value", "low", "high"))
    value, low, high = figures
    return "–" if value == "–" else f"{value} ({low} to {high})"


STEPS = Steps(full=Scale(), quick=Scale(domains=1), run=run, context=context)
