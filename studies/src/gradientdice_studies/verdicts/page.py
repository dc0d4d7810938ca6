"""The numbers of the results page."""

from __future__ import annotations

from typing import Any

import pandas as pd

from gradientdice_studies.frames import column, groups, kept, rows_where
from gradientdice_studies.markdown import number, table
from gradientdice_studies.steps import Steps
from gradientdice_studies.verdicts.figures import draw_all
from gradientdice_studies.verdicts.run import DEVELOP, DISCOUNTS, OVERLAPS, QUICK, SIZES, Scale, run

VERDICTS = ("trust", "caution", "do not trust")
CLASSES = {"right": "the table", "misspecified": "the wrong features"}
LARGE_ERROR = 0.25
HEADER = (
    "verdict",
    "logs",
    "truth inside the 95% interval",
    "median error",
    "90% quantile of the error",
    "large errors",
)


def context(frame: pd.DataFrame, scale: Scale) -> dict[str, Any]:
    """The values of the template's names."""
    answered = kept(frame, column(frame, "verdict") != "refused")
    return {
        "replications": scale.replications,
        "shares": ", ".join(f"{share:g}" for share in OVERLAPS.values()),
        "sizes": ", ".join(f"{size:,}" for size in SIZES),
        "discounts": " and ".join(f"{discount:g}" for discount in DISCOUNTS),
        "large_error": f"{LARGE_ERROR:g}",
        "logs": f"{len(frame):,}",
        "refused": len(frame) - len(answered),
        "refused_share": _refused_share(frame),
        "refused_by_features": ", ".join(
            f"{_refused_share(rows)} with {CLASSES[features]}" for (features,), rows in groups(frame, "features")
        ),
        "by_verdict": table(HEADER, [_row(verdict, rows_where(answered, verdict=verdict)) for verdict in VERDICTS]),
        "by_half": _by(answered, "half"),
        "first_half": ", ".join(DEVELOP),
        "by_features_and_overlap": _by(answered, "features", "overlap"),
    }


def _refused_share(rows: pd.DataFrame) -> str:
    return f"{(column(rows, 'verdict') == 'refused').mean():.0%}"


def _by(answered: pd.DataFrame, *names: str) -> str:
    """A table with a row for each verdict in each group."""
    rows = []
    for values, group in groups(answered, *names):
        for verdict in VERDICTS:
            found = rows_where(group, verdict=verdict)
            if len(found):
                rows.append([*values, *_row(verdict, found)])
    return table([*names, *HEADER], rows)


def _row(verdict: str, rows: pd.DataFrame) -> list[str]:
    if rows.empty:
        return [verdict, "0", "", "", "", ""]
    errors = column(rows, "error").to_numpy(dtype=float)
    return [
        verdict,
        f"{len(rows):,}",
        f"{column(rows, 'inside').mean():.0%}",
        number(pd.Series(errors).median()),
        number(float(pd.Series(errors).quantile(0.9))),
        f"{(errors > LARGE_ERROR).mean():.0%}",
    ]


STEPS = Steps(full=Scale(), quick=QUICK, run=run, context=context, draw=draw_all)
